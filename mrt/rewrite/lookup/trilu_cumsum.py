"""Lowers Trilu, CumSum and ReverseSequence.

Trilu becomes a choice by a constant mask, CumSum a product with a triangle of ones,
ReverseSequence a lookup.
"""

from __future__ import annotations

import math

import numpy as np
import onnx_ir as ir

from mrt.graph.patch import Patch
from mrt.graph.values import (
    constant,
    first,
    int_attribute,
    nodes,
    operand,
    scalar,
    shape_of,
)
from mrt.rewrite.constants.fold_constants import LARGEST_RESULT

LONGEST_SUM = (
    1024  # a longer running sum would need a matrix of more than 2^20 numbers
)


def lower_trilu_cumsum(model: ir.Model) -> int:
    """Trilu, CumSum and ReverseSequence -> plain operators.

      Trilu(x, k) -> Where(mask, x, 0)
      CumSum(x, axis) of floats -> MatMul by a triangle of ones
      CumSum(x, axis) of integers -> a sum of Pads, each shifted twice as far
      ReverseSequence(x, lengths) -> Gather

    Applies where shapes, k and the axis are constant; CumSum to at most 1024 terms.
    Equal, a CumSum of floats up to the order of its sum.
    """
    lower = {"Trilu": _trilu, "CumSum": _cumulate, "ReverseSequence": _reverse}
    return sum(lower[node.op_type](node) for node in nodes(model, *lower))


def _trilu(node: ir.Node) -> bool:
    x, shape = first(node), shape_of(first(node))
    k = scalar(operand(node, 1)) if operand(node, 1) is not None else 0.0
    if (
        shape is None
        or k is None
        or x.dtype is None
        or math.prod(shape[-2:]) > LARGEST_RESULT
    ):
        return False
    upper = int_attribute(node, "upper", 1)
    ones = np.ones(shape[-2:], np.bool_)
    patch = Patch(node)
    mask = patch.constant(
        np.triu(ones, int(k)) if upper else np.tril(ones, int(k)), "mask"
    )
    patch.finish(
        patch.add(
            "Where",
            mask,
            x,
            patch.constant(np.zeros((), x.dtype.numpy()), "zero"),
        )
    )
    return True


def _cumulate(node: ir.Node) -> bool:
    shape, axis = shape_of(first(node)), scalar(operand(node, 1))
    if not shape or axis is None or shape[int(axis) % len(shape)] > LONGEST_SUM:
        return False
    place, last = int(axis) % len(shape), len(shape) - 1
    size = shape[place]
    if first(node).dtype != ir.DataType.FLOAT:
        return _cumulate_integer(node, shape, place)
    triangle = np.triu(
        np.ones((size, size), np.float32), int_attribute(node, "exclusive", 0)
    )
    if int_attribute(node, "reverse", 0):
        triangle = np.ascontiguousarray(triangle.T)
    patch = Patch(node)
    swap = tuple(
        {place: last, last: place}.get(index, index)
        for index in range(len(shape))
    )
    transposed = patch.add("Transpose", first(node), perm=swap)
    product = patch.add(
        "MatMul", transposed, patch.constant(triangle, "triangle")
    )
    patch.finish(patch.add("Transpose", product, perm=swap))
    return True


def _cumulate_integer(node: ir.Node, shape: tuple[int, ...], axis: int) -> bool:
    """Add the value to itself, shifted by 1, 2, 4 and so on.

    After the n-th step every element is the sum of the 2^n elements up to it.
    """
    patch = Patch(node)
    value = first(node)
    backwards = int_attribute(node, "reverse", 0)
    distance = 1
    if int_attribute(node, "exclusive", 0):
        value = _moved(patch, value, shape, axis, -1 if backwards else 1)
    while distance < shape[axis]:
        moved = _moved(
            patch, value, shape, axis, -distance if backwards else distance
        )
        value = patch.add("Add", value, moved)
        distance *= 2
    if value is first(node):
        value = patch.add(
            "Reshape", value, patch.axes(shape, "shape"), allowzero=0
        )
    patch.finish(value)
    return True


def _moved(
    patch: Patch,
    value: ir.Value,
    shape: tuple[int, ...],
    axis: int,
    distance: int,
) -> ir.Value:
    """Shift the elements by `distance` and fill with zeros.

    Elements shifted beyond the end are dropped.
    """
    pads = [0] * (2 * len(shape))
    pads[axis], pads[axis + len(shape)] = distance, -distance
    assert patch.output.dtype is not None
    zero = patch.constant(np.zeros((), patch.output.dtype.numpy()), "zero")
    return patch.add(
        "Pad", value, patch.axes(pads, "pads"), zero, mode="constant"
    )


def _reverse(node: ir.Node) -> bool:
    """Reverse the first elements of each sequence by one Gather.

    The Gather runs along one axis of all times and sequences.
    """
    x = first(node)
    shape = shape_of(first(node))
    if shape is None or math.prod(shape[:2]) > LARGEST_RESULT:
        return False
    time = int_attribute(node, "time_axis", 0)
    batch = int_attribute(node, "batch_axis", 1)
    rest = shape[2:]
    patch = Patch(node)
    order = _reversed_order(patch, operand(node, 1), shape[time], shape[batch])
    value = (
        x
        if time == 0
        else patch.add("Transpose", x, perm=(1, 0, *range(2, len(shape))))
    )
    rows = patch.axes((math.prod(shape[:2]), *rest), "rows")
    value = patch.add("Reshape", value, rows, allowzero=0)
    value = patch.add("Gather", value, order, axis=0)
    apart = patch.axes((shape[time], shape[batch], *rest), "apart")
    value = patch.add("Reshape", value, apart, allowzero=0)
    patch.finish(
        value
        if time == 0
        else patch.add("Transpose", value, perm=(1, 0, *range(2, len(shape))))
    )
    return True


def _reversed_order(
    patch: Patch, lengths: ir.Value | None, steps: int, sequences: int
) -> ir.Value:
    """Return the place from which each time of each sequence comes: l - 1 - t where t is less than the length l, else t."""
    times = np.arange(steps, dtype=np.int64)[:, None]
    columns = np.arange(sequences, dtype=np.int64)
    numbers = constant(lengths)
    if numbers is not None:
        sources = np.where(times < numbers, numbers - 1 - times, times)
        order = (sources * sequences + columns).reshape(-1)
        return patch.constant(order.astype(np.int64), "sources")
    is_turned = patch.add("Greater", lengths, patch.constant(times, "times"))
    turned = patch.add("Sub", lengths, patch.constant(times + 1, "behind"))
    chosen = patch.add(
        "Where", is_turned, turned, patch.constant(times, "unturned")
    )
    rows = patch.add(
        "Mul", chosen, patch.constant(np.array(sequences), "sequences")
    )
    places = patch.add("Add", rows, patch.constant(columns, "columns"))
    every = patch.axes((steps * sequences,), "every")
    return patch.add("Reshape", places, every, allowzero=0)
