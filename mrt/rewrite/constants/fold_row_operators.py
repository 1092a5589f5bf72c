"""Folds MatMul, Gemm, CumSum, Softmax, LayerNormalization, convolutions and pools of constants.

The results are the same on every machine.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Decimal

import numpy as np
import numpy.typing as npt
import onnx_ir as ir

from mrt.graph.patch import replace_by_constant
from mrt.graph.values import (
    Array,
    constant,
    first,
    float_attribute,
    int_attribute,
    nodes,
    operand,
    scalar,
)
from mrt.rewrite.constants.fold_functions import (
    FUNCTIONS,
    MOST_RESULTS,
    MOST_TERMS,
)
from mrt.rewrite.constants.window_results import (
    MOST_PRODUCTS,
    convolution,
    greatest_of_windows,
    means_of_windows,
    transposed_convolution,
)
from mrt.rewrite.linear.affine import to_single

Exact = npt.NDArray[np.float64]


def fold_row_operators(model: ir.Model) -> int:
    """MatMul, Gemm, CumSum, Softmax, LayerNormalization, Conv, pool, ... of float constants -> constant.

    Learned queries, first states of zeros and learned images lead to such nodes. Applies where the result is finite and not too
    large. Sums are in float64 and in the order of the elements.
    """
    count = 0
    for node in nodes(model, *_FOLD):
        if constant(operand(node, 0)) is None:
            continue
        operands = [value for value in node.inputs if value is not None]
        arrays = [
            array
            for value in operands
            if (array := constant(value)) is not None
        ]
        if (
            len(arrays) != len(operands)
            or node.outputs[0].is_graph_output()
            or len(node.outputs) != 1
        ):
            continue
        if node.outputs[0].dtype != ir.DataType.FLOAT or not all(
            np.isfinite(array).all() for array in arrays
        ):
            continue
        result = _FOLD[node.op_type](
            node, np.asarray(constant(first(node)), np.float64)
        )
        single = None if result is None else to_single(result)
        if single is None or not np.isfinite(single).all():
            continue
        replace_by_constant(node.outputs[0], single)
        model.graph.remove(node, safe=True)
        count += 1
    return count


def _product(a: Exact, b: Exact) -> Exact | None:
    """Multiply matrices term by term.

    A matrix library would choose an order of its own.
    """
    if (
        min(a.ndim, b.ndim) < 1
        or a.shape[-1] != b.shape[-2 if b.ndim > 1 else 0]
        or a.shape[-1] > MOST_TERMS
    ):
        return None
    left = a[None] if a.ndim == 1 else a
    right = b[:, None] if b.ndim == 1 else b
    batch = np.broadcast_shapes(left.shape[:-2], right.shape[:-2])
    shape = (*batch, left.shape[-2], right.shape[-1])
    if math.prod(shape) * a.shape[-1] > MOST_PRODUCTS:
        return None
    total = np.zeros(shape)
    for place in range(a.shape[-1]):
        total += left[..., :, place, None] * right[..., None, place, :]
    return total.reshape(
        shape[: len(batch)]
        + shape[len(batch) + (a.ndim == 1) : len(shape) - (b.ndim == 1)]
    )


def _matmul(node: ir.Node, a: Exact) -> Array | None:
    return _product(a, np.asarray(constant(node.inputs[1]), np.float64))


def _gemm(node: ir.Node, a: Exact) -> Array | None:
    b = np.asarray(constant(node.inputs[1]), np.float64)
    c = constant(operand(node, 2))
    product = _product(
        a.T if int_attribute(node, "transA", 0) else a,
        b.T if int_attribute(node, "transB", 0) else b,
    )
    if product is None:
        return None
    scaled = product * float_attribute(node, "alpha", 1.0)
    return (
        scaled
        if c is None
        else scaled + c.astype(np.float64) * float_attribute(node, "beta", 1.0)
    )


def _running_sum(node: ir.Node, x: Exact) -> Array | None:
    place = scalar(operand(node, 1))
    if place is None or not x.ndim:
        return None
    axis, backwards = int(place) % x.ndim, int_attribute(node, "reverse", 0)
    total = np.moveaxis(np.flip(x, axis) if backwards else x, axis, 0).copy()
    for index in range(1, len(total)):
        total[index] += total[index - 1]
    if int_attribute(node, "exclusive", 0):
        total = np.roll(total, 1, 0)
        total[:1] = 0
    result = np.moveaxis(total, 0, axis)
    return np.flip(result, axis) if backwards else result


def _softmax(node: ir.Node, x: Exact) -> Array | None:
    if not x.ndim or x.size > MOST_RESULTS:
        return None
    if not x.size:
        return x
    axis = int_attribute(node, "axis", -1)
    rows = np.moveaxis(x, axis, -1)
    powers = np.array(
        [
            float(FUNCTIONS["Exp"](Decimal(number)))
            for number in (rows - rows.max(-1, keepdims=True)).flat
        ]
    )
    powers = powers.reshape(rows.shape)
    return np.moveaxis(powers / _sums(powers), -1, axis)


def _layer_norm(node: ir.Node, x: Exact) -> Array | None:
    axis = int_attribute(node, "axis", -1) % max(x.ndim, 1)
    if x.size > MOST_TERMS or not x.ndim:
        return None
    if not x.size:
        return x
    normalized = _normalized(node, x.reshape(*x.shape[:axis], -1))
    scaled = normalized.reshape(x.shape) * np.asarray(
        constant(node.inputs[1]), np.float64
    )
    shift = constant(operand(node, 2))
    return np.asarray(scaled if shift is None else scaled + shift)


def _instance_norm(node: ir.Node, x: Exact) -> Array | None:
    if x.ndim < 3 or not 0 < x.size <= MOST_TERMS:
        return None
    normalized = _normalized(node, x.reshape(*x.shape[:2], -1))
    scale, shift = (
        np.asarray(constant(value), np.float64).reshape(-1, 1)
        for value in node.inputs[1:]
    )
    return np.asarray(normalized * scale + shift).reshape(x.shape)


def _normalized(node: ir.Node, rows: Exact) -> Exact:
    """Divide what each row has beyond its mean by its deviation."""
    centred = rows - _sums(rows) / rows.shape[-1]
    deviation = np.sqrt(
        _sums(centred * centred) / rows.shape[-1]
        + np.float32(float_attribute(node, "epsilon", 1e-5))
    )
    return np.asarray(centred / deviation)


def _sums(rows: Exact) -> Exact:
    """Sum over the last axis, which stays with size 1."""
    return np.array(
        [math.fsum(row) for row in rows.reshape(-1, rows.shape[-1])]
    ).reshape(*rows.shape[:-1], 1)


_FOLD: dict[str, Callable[[ir.Node, Exact], Array | None]] = {
    "AveragePool": means_of_windows,
    "Conv": convolution,
    "ConvTranspose": transposed_convolution,
    "CumSum": _running_sum,
    "Gemm": _gemm,
    "InstanceNormalization": _instance_norm,
    "LayerNormalization": _layer_norm,
    "MatMul": _matmul,
    "MaxPool": greatest_of_windows,
    "Softmax": _softmax,
}
