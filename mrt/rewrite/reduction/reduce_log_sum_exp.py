"""Lowers ReduceLogSumExp to LogSoftmax."""

from __future__ import annotations

import math

import onnx_ir as ir

from mrt.graph.patch import Patch
from mrt.graph.values import first, nodes, shape_of
from mrt.rewrite.reduction.reduce import axes_of


def lower_reduce_log_sum_exp(model: ir.Model) -> int:
    """ReduceLogSumExp(x) -> ReduceMax(x) - ReduceMax(LogSoftmax(x)).

    A Transpose and a Reshape first make the axes one, the last. At the greatest element
    of a row, LogSoftmax is that element minus the result. Applies when the axes are
    constant and the shape is known. Equal up to rounding.
    """
    count = 0
    for node in nodes(model, "ReduceLogSumExp"):
        shape = shape_of(first(node))
        axes = axes_of(node)
        result = shape_of(node.outputs[0])
        if shape is None or axes is None or result is None:
            continue
        patch = Patch(node)
        if not axes:  # log(exp(x)) is x
            patch.finish(
                patch.add(
                    "Reshape",
                    first(node),
                    patch.axes(result, "shape"),
                    allowzero=0,
                )
            )
            count += 1
            continue
        kept = tuple(axis for axis in range(len(shape)) if axis not in axes)
        rows = (
            math.prod(shape[axis] for axis in kept),
            math.prod(shape[axis] for axis in axes),
        )
        x = patch.add("Transpose", first(node), perm=(*kept, *axes))
        x = patch.add("Reshape", x, patch.axes(rows, "rows"), allowzero=0)
        greatest, least = (
            patch.add(
                "ReduceMax",
                value,
                patch.axes((1,)),
                keepdims=1,
                noop_with_empty_axes=0,
            )
            for value in (x, patch.add("LogSoftmax", x, axis=1))
        )
        patch.finish(
            patch.add(
                "Reshape",
                patch.add("Sub", greatest, least),
                patch.axes(result, "shape"),
                allowzero=0,
            )
        )
        count += 1
    return count
