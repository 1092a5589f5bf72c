"""Lowers ReduceLogSumExp to LogSoftmax."""

from __future__ import annotations

import math

import onnx_ir as ir

from mrt.graph.patch import Patch
from mrt.graph.values import first, nodes, shape_of
from mrt.rewrite.reduction.reduce import axes_of

_INTEGERS = (ir.DataType.INT32, ir.DataType.INT64)


def lower_reduce_log_sum_exp(model: ir.Model) -> int:
    """ReduceLogSumExp(x) -> ReduceMax(x) - ReduceMax(LogSoftmax(x)).

    A Transpose and a Reshape first make the axes one, the last. At the greatest element
    of a row, LogSoftmax is that element minus the result. Applies to floats, when the axes are
    constant and the shape is known. Equal up to rounding.
    """
    return sum(_lower(node) for node in nodes(model, "ReduceLogSumExp"))


def _lower(node: ir.Node) -> bool:
    shape, axes = shape_of(first(node)), axes_of(node)
    result = shape_of(node.outputs[0])
    is_integral = node.outputs[0].dtype in _INTEGERS
    if shape is None or axes is None or result is None or is_integral:
        return False
    patch = Patch(node)
    # Of no axis, log(exp(x)) is x.
    sums = (
        _log_of_sums(patch, first(node), shape, axes) if axes else first(node)
    )
    patch.finish(
        patch.add("Reshape", sums, patch.axes(result, "shape"), allowzero=0)
    )
    return True


def _log_of_sums(
    patch: Patch, x: ir.Value, shape: tuple[int, ...], axes: tuple[int, ...]
) -> ir.Value:
    """Return the logarithm of the sum of exponentials along axes, [rows, 1]."""
    kept = tuple(axis for axis in range(len(shape)) if axis not in axes)
    rows = (
        math.prod(shape[axis] for axis in kept),
        math.prod(shape[axis] for axis in axes),
    )
    x = patch.add("Transpose", x, perm=(*kept, *axes))
    x = patch.add("Reshape", x, patch.axes(rows, "rows"), allowzero=0)
    log_softmax = patch.add("LogSoftmax", x, axis=1)
    return patch.add("Sub", _greatest(patch, x), _greatest(patch, log_softmax))


def _greatest(patch: Patch, rows: ir.Value) -> ir.Value:
    return patch.add(
        "ReduceMax",
        rows,
        patch.axes((1,)),
        keepdims=1,
        noop_with_empty_axes=0,
    )
