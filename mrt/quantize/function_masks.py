"""Keeps masks in front of Exp, Sigmoid and Tanh from stretching the range of what these read.

A mask is a number like -1e9, which Exp and Sigmoid make 0 and Tanh -1, or 1e9, which Sigmoid and Tanh make 1. A number
not far beyond all others has the same effect: the measured range ends there, and masks saturate.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import onnx_ir as ir

from mrt.graph.canonical_values import constant_of, name_of
from mrt.graph.masked_logits import FUNCTIONS, masked_logits
from mrt.graph.values import GREATEST_MASK
from mrt.quantize.softmax_masks import MARGIN, are_measured, combined_range
from mrt.table.table import CalibrationTable, MeasuredRange

Range = tuple[float, float]
LEAST_MASK = -GREATEST_MASK  # of those that are great

_ENDS: Mapping[str, Callable[[Range], Range]] = {
    "Exp": lambda it: (it[1] - MARGIN, it[1]),
    "Sigmoid": lambda it: (min(it[1], 0.0) - MARGIN, MARGIN),
    "Tanh": lambda it: (-MARGIN / 2, MARGIN / 2),
}
"""Where a function gives in 15 bits what it gives of infinities, beside what it gives of a range."""


def ranges_without_function_masks(
    nodes: Sequence[ir.Node], table: CalibrationTable
) -> dict[str, MeasuredRange]:
    """Return the ranges of what is masked in front of a function, by value."""
    ranges: dict[str, MeasuredRange] = {}
    for masked in masked_logits(nodes):
        name = name_of(masked.node.outputs[0])
        if masked.reader not in FUNCTIONS or name not in table.ranges:
            continue
        clipped = _clipped(masked.node, masked.reader, table.ranges)
        if clipped is not None:
            low, high = clipped
            range_ = MeasuredRange(low, high, low, high)
            ranges |= dict.fromkeys(masked.names, range_)
    return ranges


def _clipped(
    node: ir.Node, reader: str, ranges: Mapping[str, MeasuredRange]
) -> Range | None:
    """Return the range as far as it matters to the function; None if nothing is masked, or everything."""
    measured = ranges[name_of(node.outputs[0])]
    is_low = measured.min <= GREATEST_MASK
    is_high = measured.max >= LEAST_MASK and reader != "Exp"
    if not (is_low or is_high):
        return None
    unmasked = _unmasked_range(node, ranges)
    if unmasked is None:
        return None
    low = unmasked[0] if is_low else measured.lo
    high = unmasked[1] if is_high else min(unmasked[1], measured.hi)
    least, greatest = _ENDS[reader]((low, high))
    return (
        min(low, least) if is_low else low,
        max(high, greatest) if is_high else high,
    )


def _unmasked_range(
    node: ir.Node, ranges: Mapping[str, MeasuredRange]
) -> Range | None:
    """Return the range of the entries that an Add or a Where does not mask; None if it masks all, or a range is missing."""
    if not are_measured(node, ranges):
        return None
    unmasked = [
        _range_without_masks(operand, ranges) for operand in node.inputs[-2:]
    ]
    return combined_range(node, unmasked)


def _range_without_masks(
    value: ir.Value | None, ranges: Mapping[str, MeasuredRange]
) -> Range | None:
    """Return the range of an operand without its masks; None where it holds only masks."""
    array = constant_of(value)
    if array is None:
        measured = ranges[name_of(value)]
        array = np.array([measured.min, 0.0, measured.max])
        masks = np.abs(array) >= LEAST_MASK
        # Of a computed mask the range of the open numbers is not known; it is 0, or nothing is masked.
        array = array if masks.any() else array[[0, 2]]
    kept = array[np.abs(array) < LEAST_MASK]
    return (float(kept.min()), float(kept.max())) if kept.size else None
