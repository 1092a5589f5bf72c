"""Keeps the masks of a Softmax, or an ArgMax, from stretching the range of its logits.

A mask is a number like -1e9 that excludes an entry. The exponential of a logit 11 below
the greatest is 0 in 15 bits. So a mask has the same effect just below all other logits:
the measured range of masked logits is clipped there, and numbers below it saturate.
The logits may have several masks, and be joined with others, padded or moved behind them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal

import numpy as np
import onnx_ir as ir

from mrt.exact.precision import PRECISION
from mrt.graph.canonical_values import (
    constant_of,
    is_constant,
    name_of,
    shape_of,
)
from mrt.graph.masked_logits import (
    CHOOSING,
    EXCLUDING,
    MaskedValues,
    handed_on,
)
from mrt.graph.operators import REARRANGEMENTS
from mrt.graph.values import (
    GREATEST_MASK,
    first,
    producer,
    source_of_moves,
)
from mrt.table.table import CalibrationTable, MeasuredRange

MARGIN = 11.0
"""The distance of the clip from the least logit: e^-11 is 0 in 15 bits."""

Range = tuple[float, float]


def ranges_without_masks(
    nodes: Sequence[ir.Node], table: CalibrationTable
) -> dict[str, MeasuredRange]:
    """Return the clipped ranges of masked logits, by value."""
    unmasked_ranges = _UnmaskedRanges(nodes, table.ranges)
    low_ends: dict[ir.Value, float | None] = {}
    clipped: dict[str, MeasuredRange] = {}
    for node in reversed(nodes):
        value = node.outputs[0]
        low_end = low_ends[value] = _low_end(value, unmasked_ranges, low_ends)
        if low_end is None or value not in unmasked_ranges.masked:
            continue
        unmasked = unmasked_ranges.of(value)
        if unmasked is not None:
            high = max(unmasked[1], low_end)
            clipped[name_of(value)] = MeasuredRange(
                low_end, high, low_end, high
            )
    return clipped


class _UnmaskedRanges:
    """The ranges of the entries that no mask excludes, by value."""

    def __init__(
        self, nodes: Sequence[ir.Node], measured: Mapping[str, MeasuredRange]
    ) -> None:
        self.measured = measured
        self.masked = MaskedValues(nodes, self._is_masked_by)
        self._known: dict[ir.Value, Range | None] = {}
        for node in nodes:  # in their order, so that no operand waits
            if node.outputs[0] in self.masked:
                self.of(node.outputs[0])

    def of(self, value: ir.Value | None) -> Range | None:
        """Return that of a value; None where all entries are masked, or nothing is known."""
        if value is None:
            return (0.0, 0.0)  # that of a Pad without a fill
        if value not in self._known:
            self._known[value] = self._of(value)
        return self._known[value]

    def _is_masked_by(self, _: MaskedValues, node: ir.Node) -> bool:
        range_ = self.measured.get(name_of(node.outputs[0]))
        return (
            range_ is not None
            and range_.min <= GREATEST_MASK
            and are_measured(node, self.measured)
        )

    def _of(self, value: ir.Value) -> Range | None:
        node = value.producer()
        if node is None or value not in self.masked:
            return _range_without_masks(value, self.measured)
        if node.op_type == "Sub":
            row, greatest = map(self.of, node.inputs)
            if row is None or greatest is None:
                return None
            return row[0] - greatest[1], row[1] - greatest[0]
        if node.op_type == "LogSoftmax":
            logits = self.of(node.inputs[0])
            entries = float(PRECISION.ln(Decimal(shape_of(value)[-1])))
            return logits and (logits[0] - logits[1] - entries, 0.0)
        places = (0, 1) if node.op_type == "Add" else handed_on(node)
        return combined_range(node, [self.of(node.inputs[it]) for it in places])


def _low_end(
    value: ir.Value,
    unmasked_ranges: _UnmaskedRanges,
    low_ends: Mapping[ir.Value, float | None],
) -> float | None:
    """Return the number below which all numbers of a value mean the same to its readers.

    None: some reader tells them apart, or there is none.
    """
    if value.is_graph_output() or not value.uses():
        return None
    of_readers = [
        _low_end_for(*use, unmasked_ranges, low_ends) for use in value.uses()
    ]
    known = [it for it in of_readers if it is not None]
    return min(known) if len(known) == len(of_readers) else None


def _low_end_for(
    node: ir.Node,
    index: int,
    unmasked_ranges: _UnmaskedRanges,
    low_ends: Mapping[ir.Value, float | None],
) -> float | None:
    """Return that number for an operand and the one node that reads it; `low_ends` are those of results."""
    low_end = low_ends.get(node.outputs[0])
    if node.op_type in EXCLUDING or (
        node.op_type == "LogSoftmax" and low_end is not None
    ):
        logits = unmasked_ranges.of(node.inputs[index])
        return None if logits is None else logits[0] - MARGIN
    if node.op_type == "Exp" and _is_never_positive(first(node)):
        return -MARGIN  # function_masks has others
    if node.op_type == "ReduceMax" or (
        low_end is None and node.op_type in CHOOSING
    ):
        return _least_choice(node, unmasked_ranges.measured)
    if low_end is None:
        return None
    if node.op_type == "Add":
        if unmasked_ranges.of(node.inputs[index]) == (0.0, 0.0):
            return None  # a mask of zeros and fills needs no finer scale
        other = unmasked_ranges.of(node.inputs[1 - index])
        return None if other is None else low_end - other[1]
    if node.op_type == "Sub" and index == 0:
        other = unmasked_ranges.of(node.inputs[1])
        return None if other is None else low_end + other[0]
    return low_end if index in handed_on(node) else None


def _is_never_positive(value: ir.Value) -> bool:
    """Whether a value, perhaps moved, comes from a LogSoftmax, or is a row less its greatest."""
    source = source_of_moves(value, REARRANGEMENTS)
    if producer(source, "LogSoftmax") is not None:
        return True
    difference = producer(source, "Sub")
    if difference is None:
        return False
    row, greatest = difference.inputs
    maximum = producer(greatest, "ReduceMax")
    return maximum is not None and maximum.inputs[0] is row


def _least_choice(
    node: ir.Node, measured: Mapping[str, MeasuredRange]
) -> float | None:
    """Return what lies below all that a node chose in the samples; None if it chose a mask."""
    range_ = measured.get(name_of(node.outputs[0]))
    if range_ is None or range_.min <= GREATEST_MASK:
        return None
    # A TopK must not take a mask for the least that it chooses.
    return range_.min - MARGIN if node.op_type == "TopK" else range_.min


def unmasked_range(
    node: ir.Node, ranges: Mapping[str, MeasuredRange]
) -> Range | None:
    """Return the range of the entries that an Add or a Where does not mask; None if it masks none or all, or one is missing."""
    is_masked = ranges[name_of(node.outputs[0])].min <= GREATEST_MASK
    if not is_masked or not are_measured(node, ranges):
        return None
    operands = [
        _range_without_masks(operand, ranges) for operand in node.inputs[-2:]
    ]
    return combined_range(node, operands)


def are_measured(node: ir.Node, ranges: Mapping[str, MeasuredRange]) -> bool:
    """Whether every computed operand of an Add or a Where has a range; the products of a recurrence have none."""
    computed = [it for it in node.inputs[-2:] if it and not is_constant(it)]
    return all(name_of(it) in ranges for it in computed)


def combined_range(
    node: ir.Node, operands: Sequence[Range | None]
) -> Range | None:
    """Return the range of an Add of operands of these ranges, or of what hands them on.

    Operands of None hold only masks; the result is None if all do.
    """
    unmasked = [range_ for range_ in operands if range_ is not None]
    if not unmasked:
        return None
    lows = [range_[0] for range_ in unmasked]
    highs = [range_[1] for range_ in unmasked]
    if node.op_type == "Add":
        return float(np.add.reduce(lows)), float(np.add.reduce(highs))
    return min(lows), max(highs)


def _range_without_masks(
    value: ir.Value | None, ranges: Mapping[str, MeasuredRange]
) -> Range | None:
    """Return the range of an operand without its masks; None where it holds only masks, or has no range."""
    array = constant_of(value)
    if array is not None:
        kept = array[array > GREATEST_MASK]
        return (float(kept.min()), float(kept.max())) if kept.size else None
    measured = ranges.get(name_of(value))
    if measured is None or measured.max <= GREATEST_MASK:
        return None
    low = (
        measured.min if measured.min > GREATEST_MASK else min(measured.max, 0.0)
    )
    return low, measured.max
