"""Numbers like -1e9 that are added in front of a Softmax to shut entries out must not stretch the logits' range.

An exponential of anything 11 below the greatest logit is 0 in 15 bits. So a fill may as well lie just below everything
else: the calibrated range of the masked logits is cut there, and what lies below saturates.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import onnx_ir as ir

from mrt.graph.canonical_values import constant_of, name_of
from mrt.table.table import CalibrationTable, MeasuredRange

FILL = -1000.0  # no logit, but a mask, reaches so far
MARGIN = 11.0  # below the least logit: e^-11 is 0 in 15 bits
_MOVEMENT = ("Reshape", "Transpose", "Identity")


def without_masks(
    nodes: Sequence[ir.Node], table: CalibrationTable
) -> CalibrationTable:
    """The table with the ranges of masked logits cut."""
    ranges = dict(table.ranges)
    for node in nodes:
        if node.op_type == "Softmax":
            _cut(node.inputs[0], ranges)
    return replace(table, ranges=ranges)


def _cut(value: ir.Value | None, ranges: dict[str, MeasuredRange]) -> None:
    """Follow movement back to the node that puts the mask on, and cut the range of everything on the way."""
    path = [value]
    while (node := _producer(path[-1])) is not None and node.op_type in _MOVEMENT:
        path.append(node.inputs[0])
    if (
        node is None
        or node.op_type not in ("Add", "Where")
        or any(item is None or len(item.uses()) > 1 for item in path)
    ):
        return
    seen = ranges[name_of(path[-1])]
    parts = [_open_range(operand, ranges) for operand in node.inputs[-2:]]
    if seen.min > FILL or all(part is None for part in parts):
        return
    known = [part for part in parts if part is not None]
    if node.op_type == "Add":
        low, high = (
            float(np.add.reduce([part[side] for part in known])) for side in (0, 1)
        )
    else:
        low, high = min(part[0] for part in known), max(part[1] for part in known)
    low, high = low - MARGIN, max(high, low)
    for item in path:
        ranges[name_of(item)] = MeasuredRange(low, high, low, high)


def _open_range(
    value: ir.Value | None, ranges: Mapping[str, MeasuredRange]
) -> tuple[float, float] | None:
    """The range of an operand but for fills; None where it is nothing but them."""
    array = constant_of(value)
    if array is not None:
        kept = array[array > FILL]
        return (float(kept.min()), float(kept.max())) if kept.size else None
    seen = ranges[name_of(value)]
    if seen.max <= FILL:
        return None
    return (seen.min if seen.min > FILL else min(seen.max, 0.0), seen.max)


def _producer(value: ir.Value | None) -> ir.Node | None:
    return None if value is None or value.is_graph_output() else value.producer()
