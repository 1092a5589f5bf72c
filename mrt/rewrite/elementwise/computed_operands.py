"""Lowers nodes with computed operands where the canonical form needs constants."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import onnx_ir as ir

from mrt.graph.patch import Patch, set_attributes
from mrt.graph.values import (
    constant,
    first,
    float_attribute,
    int_attribute,
    nodes,
    operand,
    shape_of,
)
from mrt.rewrite.constants.fold_constants import LARGEST_RESULT


def lower_computed_operands(model: ir.Model) -> int:
    """Nodes with computed bounds, slopes, biases, weights or moments -> several nodes.

      Clip(x, low, high) -> Min(Max(x, low), high)
      PRelu(x, s) -> Relu(x) - s * Relu(-x)
      Conv(x, W, b), ConvTranspose(x, W, b) -> Conv(x, W) + b
      Conv(x, W) -> MatMul(W, the windows of x, taken by a Conv with ones)
      BatchNormalization(x, g, b, m, v) -> (x - m) * (g / Sqrt(v + epsilon)) + b

    Applies where bounds, slopes, a bias, weights or any number of a normalization are
    computed. Equal up to rounding.
    """
    return sum(_LOWER[node.op_type](node) for node in nodes(model, *_LOWER))


def _is_computed(value: ir.Value | None) -> bool:
    return value is not None and constant(value) is None


def _clip(node: ir.Node) -> bool:
    low, high = operand(node, 1), operand(node, 2)
    if not _is_computed(low) and not _is_computed(high):
        return False
    patch, value = Patch(node), first(node)
    for operator, limit in (("Max", low), ("Min", high)):
        if limit is not None:
            value = patch.add(operator, value, limit)
    patch.finish(value)
    return True


def _prelu(node: ir.Node) -> bool:
    slope = operand(node, 1)
    if not _is_computed(slope):
        return False
    patch = Patch(node)
    below = patch.add(
        "Mul", patch.add("Relu", patch.add("Neg", first(node))), slope
    )
    patch.finish(patch.add("Sub", patch.add("Relu", first(node)), below))
    return True


def _bias(node: ir.Node) -> bool:
    bias, shape = operand(node, 2), shape_of(node.outputs[0])
    if (
        bias is None
        or shape is None
        or not (_is_computed(bias) or _is_computed(operand(node, 1)))
    ):
        return False
    patch = Patch(node)
    value = patch.add(node.op_type, first(node), operand(node, 1))
    maker = value.producer()
    assert maker is not None
    maker.attributes.update(node.attributes)
    patch.finish(patch.add("Add", value, _per_channel(patch, bias, len(shape))))
    return True


def _convolution(node: ir.Node) -> bool:
    """Lower a Conv with computed weights to a MatMul with the windows as columns.

    The columns have one channel for each tap of the kernel in each channel of x.
    """
    weights = shape_of(operand(node, 1))
    x = shape_of(first(node))
    y = shape_of(node.outputs[0])
    if (
        not _is_computed(operand(node, 1))
        or weights is None
        or x is None
        or y is None
        or operand(node, 2) is not None
    ):
        return _bias(node)
    taps = math.prod(weights[2:])
    groups = int_attribute(node, "group", 1)
    places = math.prod(y[2:])
    if x[1] * taps**2 > LARGEST_RESULT:
        return False
    patch = Patch(node)
    ones = np.tile(np.eye(taps, dtype=np.float32), (x[1], 1)).reshape(
        x[1] * taps, 1, *weights[2:]
    )
    columns = patch.add("Conv", first(node), patch.constant(ones, "ones"))
    maker = columns.producer()
    assert maker is not None
    maker.attributes.update(node.attributes)
    set_attributes(maker, group=x[1], kernel_shape=weights[2:])
    inner = weights[1] * taps
    columns = patch.add(
        "Reshape",
        columns,
        patch.axes((x[0], groups, inner, places), "columns"),
        allowzero=0,
    )
    rows = patch.axes((1, groups, weights[0] // groups, inner), "rows")
    product = patch.add(
        "MatMul",
        patch.add("Reshape", operand(node, 1), rows, allowzero=0),
        columns,
    )
    patch.finish(
        patch.add("Reshape", product, patch.axes(y, "image"), allowzero=0)
    )
    return True


def _batch_norm(node: ir.Node) -> bool:
    numbers, shape = node.inputs[1:], shape_of(first(node))
    if (
        shape is None
        or len(node.inputs) != 5
        or not any(map(_is_computed, numbers))
    ):
        return False
    patch = Patch(node)
    scale, shift, mean, variance = (
        _per_channel(patch, value, len(shape)) for value in numbers
    )
    epsilon = patch.constant(
        np.array(float_attribute(node, "epsilon", 1e-5), np.float32), "epsilon"
    )
    factor = patch.add(
        "Div", scale, patch.add("Sqrt", patch.add("Add", variance, epsilon))
    )
    centred = patch.add("Sub", first(node), mean)
    patch.finish(patch.add("Add", patch.add("Mul", centred, factor), shift))
    return True


def _per_channel(patch: Patch, value: ir.Value | None, rank: int) -> ir.Value:
    return patch.add(
        "Reshape",
        value,
        patch.axes((-1, *[1] * (rank - 2)), "per_channel"),
        allowzero=0,
    )


_LOWER: dict[str, Callable[[ir.Node], bool]] = {
    "Clip": _clip,
    "PRelu": _prelu,
    "Conv": _convolution,
    "ConvTranspose": _bias,
    "BatchNormalization": _batch_norm,
}
