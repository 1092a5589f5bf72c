"""Fuses a normalization written as means, differences and roots into one node.

Fuses a Softmax written as exponentials likewise.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from mrt.graph.patch import Patch
from mrt.graph.values import (
    constant_integers,
    first,
    nodes,
    operand,
    producer,
    scalar,
    shape_of,
)
from mrt.rewrite.normalization.normalized import add_normalized


@dataclass(frozen=True)
class _Mean:
    """factor * sum of `value` over `axes`; a mean where factor is 1 / count."""

    value: ir.Value
    axes: tuple[int, ...]
    factor: float

    @property
    def count(self) -> int:
        shape = shape_of(self.value) or ()
        return math.prod(shape[axis] for axis in self.axes)

    @property
    def exact(self) -> bool:
        return abs(self.factor * self.count - 1.0) < 1e-5


def fuse_normalization(model: ir.Model) -> int:
    """(x - mean) / Sqrt(variance + eps) -> LayerNormalization or InstanceNormalization.

    The variance may be a sum of squared differences times any factor, or E[x^2] -
    E[x]^2, each with or without a bound at 0. A mean is a ReduceSum times a constant;
    Reshape and Expand may lie in between. Exp(x - m) / ReduceSum(Exp(x - m)) -> Softmax
    where m is one number for each row. Equal up to rounding.
    """
    return sum(
        _fuse_normalization(node) or _fuse_softmax(node)
        for node in nodes(model, "Div")
    )


def _fuse_normalization(node: ir.Node) -> bool:
    root = producer(_bare(node.inputs[1]), "Sqrt")
    difference = producer(_bare(first(node)), "Sub")
    if (
        root is None
        or difference is None
        or difference.outputs[0].shape is None
    ):
        return False
    variance, epsilon = without_epsilon(_bare(first(root)))
    row_mean = _variance(variance)
    if row_mean is None or not _is_deviation(difference, row_mean):
        return False
    shape = shape_of(row_mean.value)
    if (
        shape is None
        or shape_of(node.outputs[0]) != shape
        or not _spans(node.inputs[1], shape, row_mean.axes)
    ):
        return False
    ratio = row_mean.factor * row_mean.count  # 1, or n / (n - 1)
    patch = Patch(node)
    value = add_normalized(
        patch, row_mean.value, shape, row_mean.axes, epsilon / ratio
    )
    if not row_mean.exact:
        value = patch.add(
            "Mul",
            value,
            patch.constant(np.array(1 / np.sqrt(ratio), np.float32), "spread"),
        )
    patch.finish(value)
    return True


def _fuse_softmax(node: ir.Node) -> bool:
    """Fuse exp(x - m) / sum(exp(x - m)) into Softmax(x).

    m has no effect on the quotient if it is one number for each row.
    """
    total = producer(_bare(node.inputs[1]), "ReduceSum")
    exponential = producer(first(node), "Exp")
    axes = constant_integers(operand(total, 1)) if total is not None else None
    if (
        total is None
        or exponential is None
        or axes is None
        or first(total) is not exponential.outputs[0]
    ):
        return False
    x, shape = first(exponential), shape_of(exponential.outputs[0])
    if (
        shape is None
        or len(axes) != 1
        or shape_of(node.outputs[0]) != shape
        or not _spans(node.inputs[1], shape, axes)
    ):
        return False
    difference = producer(x, "Sub")
    if (
        difference is not None
        and shape_of(first(difference)) == shape
        and _spans(difference.inputs[1], shape, axes)
    ):
        x = first(difference)
    patch = Patch(node)
    patch.finish(patch.add("Softmax", x, axis=axes[0]))
    return True


def _bare(value: ir.Value | None) -> ir.Value:
    """Follow Reshape and Expand back to the value that they repeat or regroup.

    Only axes of size 1 may come or go in a Reshape.
    """
    assert value is not None
    while (node := producer(value, "Reshape", "Expand")) is not None:
        before, after = shape_of(first(node)), shape_of(value)
        if before is None or after is None:
            break
        same = [size for size in before if size != 1] == [
            size for size in after if size != 1
        ]
        if not same and node.op_type != "Expand":
            break
        value = first(node)
    return value


def without_epsilon(value: ir.Value) -> tuple[ir.Value, float]:
    """Return what a small constant is added to, and the constant, which is 0 where there is none."""
    node = producer(value, "Add")
    added = None if node is None else scalar(operand(node, 1))
    return (
        (value, 0.0)
        if node is None or added is None or added < 0
        else (_bare(first(node)), added)
    )


def _variance(value: ir.Value) -> _Mean | None:
    """Return the mean whose squared differences `value` averages, None if it does not.

    The result has the axes and the factor of that average.
    """
    held = producer(value, "Max", "Relu", "Clip")
    value = value if held is None else _bare(first(held))
    if (mean := _mean(value)) is not None:
        squared = _squared(mean.value)
        difference = (
            producer(_bare(squared), "Sub") if squared is not None else None
        )
        row_mean = (
            _Mean(first(difference), mean.axes, mean.factor)
            if difference is not None
            else None
        )
        if (
            row_mean is None
            or difference is None
            or shape_of(mean.value) != shape_of(row_mean.value)
        ):
            return None
        return row_mean if _is_deviation(difference, row_mean) else None
    return _variance_of_moments(value)


def _variance_of_moments(value: ir.Value) -> _Mean | None:
    """Read `value` as E[x^2] - E[x]^2; return the mean of x, or None."""
    node = producer(value, "Sub")
    if node is None:
        return None
    second = _mean(_bare(first(node)))
    first_squared = _squared(_bare(node.inputs[1]))
    x = None if second is None else _squared(second.value)
    average = first_squared and _mean(_bare(first_squared))
    if (
        second is None
        or x is None
        or not average
        or not (second.exact and average.exact)
    ):
        return None
    same = _bare(x) is _bare(average.value) and second.axes == average.axes
    same = same and shape_of(second.value) == shape_of(
        average.value
    ) == shape_of(x)
    return _Mean(x, second.axes, second.factor) if same else None


def _mean(value: ir.Value) -> _Mean | None:
    product = producer(value, "Mul")
    factor = None if product is None else scalar(operand(product, 1))
    total = (
        None
        if product is None
        else producer(_bare(first(product)), "ReduceSum")
    )
    axes = None if total is None else constant_integers(operand(total, 1))
    if (
        total is None
        or factor is None
        or axes is None
        or factor <= 0
        or shape_of(first(total)) is None
    ):
        return None
    return _Mean(first(total), axes, factor)


def _squared(value: ir.Value) -> ir.Value | None:
    node = producer(value, "Mul")
    return (
        first(node)
        if node is not None and node.inputs[0] is node.inputs[1]
        else None
    )


def mean_of_squares(value: ir.Value, axes: tuple[int, ...]) -> ir.Value | None:
    """Return the x of which `value` is the mean of x * x over these axes, None if it is none."""
    mean = _mean(value)
    if mean is None or not mean.exact or mean.axes != axes:
        return None
    return _squared(mean.value)


def _is_deviation(difference: ir.Node, row_mean: _Mean) -> bool:
    """Whether `difference` is the value minus its own mean over the same axes."""
    shape = shape_of(row_mean.value)
    mean = _mean(_bare(difference.inputs[1]))
    return (
        shape is not None
        and mean is not None
        and mean.exact
        and _bare(first(difference)) is _bare(row_mean.value)
        and shape_of(first(difference))
        == shape
        == shape_of(difference.outputs[0])
        and _bare(mean.value) is _bare(row_mean.value)
        and mean.axes == row_mean.axes
        and shape_of(mean.value) == shape
        and _spans(difference.inputs[1], shape, row_mean.axes)
    )


def _spans(
    value: ir.Value | None, shape: tuple[int, ...], axes: tuple[int, ...]
) -> bool:
    """Whether `value` has one number per row of `shape`, constant along each row.

    The rows run along `axes`.
    """
    sizes = shape_of(value)
    if sizes is None or len(sizes) > len(shape):
        return False
    sizes = (1,) * (len(shape) - len(sizes)) + sizes
    while producer(value, "Expand") is not None and sizes == shape:
        value = first(_node(value))
        unexpanded = shape_of(value)
        if unexpanded is None or len(unexpanded) > len(shape):
            return False
        sizes = (1,) * (len(shape) - len(unexpanded)) + unexpanded
    return all(
        size == (1 if axis in axes else shape[axis])
        for axis, size in enumerate(sizes)
    )


def _node(value: ir.Value | None) -> ir.Node:
    assert value is not None
    node = value.producer()
    assert node is not None
    return node
