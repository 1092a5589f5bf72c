"""Lowers ReduceProd to products of halves."""

from __future__ import annotations

import onnx_ir as ir

from mrt.graph.patch import Patch
from mrt.graph.values import first, nodes, shape_of
from mrt.rewrite.reduction.reduce import axes_of

# A longer product overflows float32 or is 0, unless all its factors are close to 1.
MOST_FACTORS = 256
_TYPES = (ir.DataType.FLOAT, ir.DataType.INT32, ir.DataType.INT64)


def lower_reduce_prod(model: ir.Model) -> int:
    """ReduceProd(x, axes) -> Slice and Mul, halving each axis down to 1, and a Reshape.

    Applies to computed floats and integers, constant axes and at most MOST_FACTORS factors per axis.
    Equal up to rounding of floats.
    """
    count = 0
    for node in nodes(model, "ReduceProd"):
        shape = shape_of(first(node))
        axes = axes_of(node)
        result = shape_of(node.outputs[0])
        if (
            shape is None
            or axes is None
            or result is None
            or node.outputs[0].dtype not in _TYPES
        ):
            continue
        if max((shape[axis] for axis in axes), default=1) > MOST_FACTORS:
            continue
        patch, value = Patch(node), first(node)
        for axis in axes:
            value = _product(patch, value, axis, shape[axis])
        patch.finish(
            patch.add(
                "Reshape", value, patch.axes(result, "shape"), allowzero=0
            )
        )
        count += 1
    return count


def _product(patch: Patch, value: ir.Value, axis: int, size: int) -> ir.Value:
    left_over: list[ir.Value] = []
    while size > 1:
        half = size // 2
        if size % 2:
            left_over.append(patch.slice(value, axis, size - 1, size))
        value = patch.add(
            "Mul",
            *(
                patch.slice(value, axis, start, start + half)
                for start in (0, half)
            ),
        )
        size = half
    for other in left_over:
        value = patch.add("Mul", value, other)
    return value
