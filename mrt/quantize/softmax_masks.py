"""Keeps the masks of a Softmax, or an ArgMax, from stretching the range of its logits.

A mask is a number like -1e9 that excludes an entry. The exponential of a logit 11 below
the greatest is 0 in 15 bits. So a mask has the same effect just below all other logits:
the measured range of masked logits is clipped there, and numbers below it saturate.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import onnx_ir as ir

from mrt.graph.canonical_values import constant_of, is_constant, name_of
from mrt.graph.masked_logits import FUNCTIONS, masked_logits
from mrt.graph.values import GREATEST_MASK
from mrt.table.table import CalibrationTable, MeasuredRange

MARGIN = 11.0
"""The distance of the clip from the least logit: e^-11 is 0 in 15 bits."""


def ranges_without_masks(
    nodes: Sequence[ir.Node], table: CalibrationTable
) -> dict[str, MeasuredRange]:
    """Return the clipped ranges of masked logits, by value."""
    clipped: dict[str, MeasuredRange] = {}
    for logits in masked_logits(nodes):
        if logits.reader in FUNCTIONS:
            continue  # see function_masks
        unmasked = open_range(logits.node, {**table.ranges, **clipped})
        if unmasked is not None:
            low, high = unmasked
            low, high = low - MARGIN, max(high, low)
            range_ = MeasuredRange(low, high, low, high)
            clipped |= dict.fromkeys(logits.names, range_)
    return clipped


def open_range(
    node: ir.Node, ranges: Mapping[str, MeasuredRange]
) -> tuple[float, float] | None:
    """Return the range of the entries that an Add or a Where does not mask; None if it masks none or all, or one is missing."""
    is_masked = ranges[name_of(node.outputs[0])].min <= GREATEST_MASK
    if not is_masked or not are_measured(node, ranges):
        return None
    operands = [
        _unmasked_range(operand, ranges) for operand in node.inputs[-2:]
    ]
    return combined_range(node, operands)


def are_measured(node: ir.Node, ranges: Mapping[str, MeasuredRange]) -> bool:
    """Whether every computed operand of an Add or a Where has a range; the products of a recurrence have none."""
    computed = [it for it in node.inputs[-2:] if it and not is_constant(it)]
    return all(name_of(it) in ranges for it in computed)


def combined_range(
    node: ir.Node, operands: Sequence[tuple[float, float] | None]
) -> tuple[float, float] | None:
    """Return the range of an Add or a Where of operands of these ranges; those of None hold only masks, None if all do."""
    unmasked = [range_ for range_ in operands if range_ is not None]
    if not unmasked:
        return None
    lows = [range_[0] for range_ in unmasked]
    highs = [range_[1] for range_ in unmasked]
    if node.op_type == "Add":
        return float(np.add.reduce(lows)), float(np.add.reduce(highs))
    return min(lows), max(highs)


def _unmasked_range(
    value: ir.Value | None, ranges: Mapping[str, MeasuredRange]
) -> tuple[float, float] | None:
    """Return the range of an operand without its masks; None where it holds only masks."""
    array = constant_of(value)
    if array is not None:
        kept = array[array > GREATEST_MASK]
        return (float(kept.min()), float(kept.max())) if kept.size else None
    measured = ranges[name_of(value)]
    if measured.max <= GREATEST_MASK:
        return None
    low = (
        measured.min if measured.min > GREATEST_MASK else min(measured.max, 0.0)
    )
    return low, measured.max
