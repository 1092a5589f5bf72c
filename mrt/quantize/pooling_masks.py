"""Keeps the fills of masked pooling from stretching the range of what is pooled.

Where(mask, -1e9, x), or x + (1 - mask) * -1e9, keeps entries out of a ReduceMax, a MaxPool
or a Max: beside any other entry the least of x has the same effect. So the range is that
of x, or reaches down to the least result, and what is below saturates; likewise a great
fill of a Where in front of a ReduceMin or a Min. Where all entries are masked, the float
model gives the fill, and the program the least number. If that happens in a sample, the
range stays as measured.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import onnx_ir as ir

from mrt.graph.canonical_values import constant_of, is_constant, name_of
from mrt.graph.operators import GREATEST_OF, LEAST_OF, MOVES_OF_ONE
from mrt.graph.values import GREATEST_MASK
from mrt.quantize.softmax_masks import unmasked_range
from mrt.table.table import CalibrationTable, MeasuredRange


def ranges_without_fills(
    nodes: Sequence[ir.Node], table: CalibrationTable
) -> dict[str, MeasuredRange]:
    """Return the ranges of what is filled for pooling, and of what moves it, by value."""
    ranges: dict[str, MeasuredRange] = {}
    for node in nodes:
        if node.op_type not in ("Add", "Where"):
            continue
        moved, extremes = _way_to_extremes(node.outputs[0])
        filled = _filled(node, table.ranges) if extremes else None
        if filled is None:
            continue
        fill, x = filled
        if all(_drops(fill, extreme, table.ranges) for extreme in extremes):
            range_ = _reaching(x, extremes, table.ranges)
            ranges |= dict.fromkeys(moved, range_)
    return ranges


def _filled(
    node: ir.Node, ranges: Mapping[str, MeasuredRange]
) -> tuple[float, MeasuredRange] | None:
    """Return a fill, or the greatest number that masks, and the range of all other entries."""
    *_, fill, x = node.inputs
    computed = [value for value in (fill, x) if not is_constant(value)]
    if any(
        name_of(value) not in ranges for value in (*computed, *node.outputs)
    ):
        return None  # integers have none
    if node.op_type == "Add":
        sums = unmasked_range(node, ranges)
        return sums and (GREATEST_MASK, MeasuredRange(*sums, *sums))
    if constant_of(fill) is None:
        fill, x = x, fill
    fills = constant_of(fill)
    if fills is None or is_constant(x) or np.unique(fills).size != 1:
        return None
    return float(fills.flat[0]), ranges[name_of(x)]


def _way_to_extremes(value: ir.Value) -> tuple[list[str], list[ir.Node]]:
    """Follow movement from a value; return the names on the way, and the readers if all choose an extreme."""
    waiting, moved = [value], list[str]()
    extremes: list[ir.Node] = []
    while waiting:
        current = waiting.pop()
        moved.append(name_of(current))
        for node, index in current.uses():
            if node.op_type in GREATEST_OF | LEAST_OF:
                extremes.append(node)
            elif node.op_type in MOVES_OF_ONE and index == 0:
                waiting.append(node.outputs[0])
            else:
                return moved, []
        if current.is_graph_output():
            return moved, []
    return moved, extremes


def _drops(
    fill: float, extreme: ir.Node, ranges: Mapping[str, MeasuredRange]
) -> bool:
    """Return whether this reader never chose a fill that masks."""
    range_ = ranges.get(name_of(extreme.outputs[0]))
    if range_ is None:
        return False
    if extreme.op_type in LEAST_OF:
        fill, least = -fill, -range_.max
    else:
        least = range_.min
    return fill <= GREATEST_MASK and fill < least


def _reaching(
    x: MeasuredRange,
    extremes: Sequence[ir.Node],
    ranges: Mapping[str, MeasuredRange],
) -> MeasuredRange:
    """Return the range of x as far as the results reach beyond it: an operand of a Max may be below the other."""
    low, high = x, x
    for extreme in extremes:
        result = ranges[name_of(extreme.outputs[0])]
        if extreme.op_type in LEAST_OF and result.max > high.max:
            high = result
        elif extreme.op_type in GREATEST_OF and result.min < low.min:
            low = result
    return MeasuredRange(
        low.min, high.max, min(low.lo, x.lo), max(high.hi, x.hi)
    )
