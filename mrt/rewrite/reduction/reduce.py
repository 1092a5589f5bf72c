"""Canonicalizes reductions to constant axes with keepdims, and means and norms to sums."""

from __future__ import annotations

import math

import numpy as np
import onnx_ir as ir

from mrt.graph.operators import REDUCTIONS
from mrt.graph.patch import Patch
from mrt.graph.values import (
    constant_integers,
    first,
    int_attribute,
    nodes,
    operand,
    rank_of,
    shape_of,
)

_FUNCTION_OF_THE_SUM = {"ReduceL2": "Sqrt", "ReduceLogSum": "Log"}
_REDUCTIONS = ("ReduceSum", "ReduceMax", "ReduceMin", "ReduceMean", "ReduceL1", "ReduceL2", "ReduceSumSquare",
               "ReduceLogSum")  # fmt: skip


def canonicalize_reduce(model: ir.Model) -> int:
    """Reduce*(x, axes) -> ReduceSum, ReduceMax or ReduceMin with sorted axes, kept.

      ReduceMean -> sum * (1 / count), of integers sum / count
      ReduceL1 -> sum of Abs
      ReduceSumSquare -> sum of x * x
      ReduceL2 -> Sqrt of the sum of x * x
      ReduceLogSum -> Log of the sum

    A root or logarithm of integers is of their Cast to float, and a Cast cuts it to an integer:
    close to an integer it may be the next.
    Without keepdims, a Reshape removes the axes. Applies when the axes are constant and
    the shape is known. The mean of no terms is no number, and stays. Means differ by the rounding of 1 / count.
    """
    count = 0
    for node in nodes(model, *_REDUCTIONS):
        shape, axes = shape_of(first(node)), axes_of(node)
        if (
            shape is None
            or axes is None
            or node.outputs[0].shape is None
            or _is_written(node, axes)
        ):
            continue
        terms = math.prod(shape[axis] for axis in axes)
        if node.op_type == "ReduceMean" and not terms:
            continue
        patch = Patch(node)
        value = _reduce(patch, node, axes, terms)
        if int_attribute(node, "keepdims", 1) != 1:
            result = tuple(
                size for axis, size in enumerate(shape) if axis not in axes
            )
            value = patch.add(
                "Reshape", value, patch.axes(result, "shape"), allowzero=0
            )
        patch.finish(value)
        count += 1
    return count


def axes_of(node: ir.Node) -> tuple[int, ...] | None:
    """Return the axes of a reduction, sorted and counted from the front.

    None where they are not constant.
    """
    rank = rank_of(first(node))
    axes_operand = operand(node, 1)
    axes = constant_integers(axes_operand) if axes_operand is not None else ()
    if rank is None or axes is None:
        return None
    if not axes:
        return (
            ()
            if int_attribute(node, "noop_with_empty_axes", 0)
            else tuple(range(rank))
        )
    return tuple(sorted({axis % rank for axis in axes}))


def _is_written(node: ir.Node, axes: tuple[int, ...]) -> bool:
    return (
        node.op_type in REDUCTIONS
        and constant_integers(operand(node, 1)) == axes
        and int_attribute(node, "keepdims", 1) == 1
        and len(axes) > 0
    )


def _reduce(
    patch: Patch, node: ir.Node, axes: tuple[int, ...], count: int
) -> ir.Value:
    x, operator = first(node), node.op_type
    if operator == "ReduceL1":
        x = patch.add("Abs", x)
    if operator in ("ReduceL2", "ReduceSumSquare"):
        x = patch.add("Mul", x, x)
    kind = operator if operator in ("ReduceMax", "ReduceMin") else "ReduceSum"
    if (
        not axes
    ):  # nothing to reduce: a Reshape to the same shape, removed later
        shape = shape_of(first(node)) or ()
        value = patch.add("Reshape", x, patch.axes(shape, "shape"), allowzero=0)
    else:
        value = patch.add(
            kind, x, patch.axes(axes), keepdims=1, noop_with_empty_axes=0
        )
    if operator == "ReduceMean":
        return _divided(patch, value, count, node)
    after = _FUNCTION_OF_THE_SUM.get(operator)
    if after is None:
        return value
    if not _is_integral(node):
        return patch.add(after, value)
    real = patch.add(after, patch.add("Cast", value, to=int(ir.DataType.FLOAT)))
    return patch.add("Cast", real, to=int(_type_of(node)))


def _divided(
    patch: Patch, total: ir.Value, count: int, node: ir.Node
) -> ir.Value:
    """Return a mean: of integers it is cut off toward 0, as Div does."""
    if _is_integral(node):
        divisor = np.array(count, _type_of(node).numpy())
        return patch.add("Div", total, patch.constant(divisor, "count"))
    inverse = np.array(1.0 / count, np.float32)
    return patch.add("Mul", total, patch.constant(inverse, "inverse_count"))


def _is_integral(node: ir.Node) -> bool:
    return _type_of(node).is_integer()


def _type_of(node: ir.Node) -> ir.DataType:
    return first(node).dtype or ir.DataType.FLOAT
