"""The rule of MatMul of two tensors, one of which may be constant, to an i32 accumulator.

accumulator = sum over k of (a - zero point of a)[.., k] * (b - zero point of b)[k, ..]
real        = scale of a * scale of b * accumulator
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import onnx_ir as ir

from cvm.program import DTYPES
from mrt.graph.canonical_values import (
    is_constant,
    name_of,
    require_constant,
    shape_of,
)
from mrt.quantize.builder import Handle
from mrt.quantize.context import LoweringContext
from mrt.quantize.decompose import emit_in_parts, slice_last_axis
from mrt.quantize.layer_weights import scales_of_weights
from mrt.quantize.product_operand import product_operand
from mrt.quantize.rules.registry import rule
from mrt.quantize.tensor import (
    Tensor,
    identity,
)
from mrt.quantize.weights import quantize_weights

MOST_PARTS = 4
"""Operands are made coarser until so many sums in i32 hold all the products."""


@rule("MatMul")
def matmul(net: LoweringContext, node: ir.Node) -> None:
    """Write a matmul on [B, rows, columns], where B is the product of all batch axes."""
    left, right = _matrices(net, node)
    left, right = _coarse_enough(net, left, right)
    batch = np.broadcast_shapes(net.shape(left)[:-2], net.shape(right)[:-2])
    a = _with_one_batch_axis(net, left, batch)
    b = _with_one_batch_axis(net, right, batch)
    terms = net.shape(a)[2]

    def emit(start: int, stop: int) -> Handle:
        columns = slice_last_axis(net.builder, a.value, start, stop)
        rows = _rows(net, b, start, stop)
        zero_points = {"a_zp": a.zero_point, "b_zp": b.zero_point}
        return net.builder.emit("matmul", columns, rows, **zero_points)

    total, shift = emit_in_parts(net.builder, terms, emit)
    shape = shape_of(node.outputs[0])
    value = net.reshaped(total, shape)
    scale = np.ldexp(left.scale * right.scale, shift)
    net.define(node.outputs[0], Tensor(value, scale, 0, identity(len(shape))))


def _rows(
    net: LoweringContext, matrix: Tensor, start: int, stop: int
) -> Handle:
    """Return the rows [start, stop) of each matrix of a batch."""
    count, rows, columns = net.shape(matrix)
    if stop - start == rows:
        return matrix.value
    size = (count, stop - start, columns)
    return net.builder.emit(
        "slice", matrix.value, start=(0, start, 0), size=size
    )


def _matrices(net: LoweringContext, node: ir.Node) -> tuple[Tensor, Tensor]:
    """Return both operands in one dtype, with two axes or more.

    They have 16 bits if a computed operand has, or if the options give a constant one
    more than 8.
    """
    computed: dict[int, Tensor] = {}
    for index, value in enumerate(node.inputs):
        if not is_constant(value):
            computed[index] = net.to_float_layout(product_operand(net, value))
    dtypes = {net.dtype(tensor) for tensor in computed.values()}
    weight_bits = net.options.weight_bits_of(name_of(node.outputs[0]))
    fine_weights = len(computed) < 2 and weight_bits > 8
    dtype = "i16" if fine_weights or "i16" in dtypes else "i8"
    operands: list[Tensor] = []
    for index in (0, 1):
        if index in computed:
            operands.append(net.widen(computed[index], dtype))
        else:
            operands.append(_constant_matrix(net, node, index, dtype))
    left, right = operands
    return _as_row(net, left), _as_column(net, right)


def _constant_matrix(
    net: LoweringContext, node: ir.Node, index: int, dtype: str
) -> Tensor:
    """Return the integer weights of a constant operand.

    On the right each column has a scale, which becomes that of an output channel; on
    the left there is one scale.
    """
    array = require_constant(node, index)
    bits = net.options.weight_bits_of(name_of(node.outputs[0]))
    channels = np.moveaxis(array, -1, 0) if index == 1 else array[None]
    no_bias = np.zeros(len(channels))
    scales = scales_of_weights(
        net, channels, bits, bias=no_bias, input_scale=1.0
    )
    integers = quantize_weights(channels, scales, bits=bits).astype(
        DTYPES[dtype]
    )
    matrix = np.moveaxis(integers, 0, -1) if index == 1 else integers[0]
    return Tensor(net.constant(matrix), scales, 0, identity(array.ndim))


def _as_row(net: LoweringContext, tensor: Tensor) -> Tensor:
    """Return a vector on the left as [1, n]; any other tensor as it is."""
    if len(tensor.layout) > 1:
        return tensor
    value = net.reshaped(tensor.value, (1, net.shape(tensor)[0]))
    return replace(tensor, value=value, layout=identity(2))


def _as_column(net: LoweringContext, tensor: Tensor) -> Tensor:
    """Return a vector on the right as [n, 1]; any other tensor as it is."""
    if len(tensor.layout) > 1:
        return tensor
    value = net.reshaped(tensor.value, (net.shape(tensor)[0], 1))
    return replace(tensor, value=value, layout=identity(2))


def _coarse_enough(
    net: LoweringContext, left: Tensor, right: Tensor
) -> tuple[Tensor, Tensor]:
    """Halve the operand with the greater integers while the sum is too long; return both.

    i32 cannot hold two products of full 16-bit integers, so 512 terms would need 512
    parts; with integers of 12 bits four parts are enough.
    """
    terms = net.shape(left)[-1]
    left_size, right_size = _magnitude(net, left), _magnitude(net, right)
    left_halvings = right_halvings = 0
    while terms * left_size * right_size >= MOST_PARTS * 2**31:
        if left_size >= right_size:
            left_halvings += 1
            left_size = (left_size + 1) // 2
        else:
            right_halvings += 1
            right_size = (right_size + 1) // 2
    return _halved(net, left, left_halvings), _halved(
        net, right, right_halvings
    )


def _magnitude(net: LoweringContext, tensor: Tensor) -> int:
    """Return the greatest proven distance of an integer from the zero point."""
    proven = net.builder.bounds[tensor.value]
    below = abs(proven.min - tensor.zero_point)
    above = abs(proven.max - tensor.zero_point)
    return max(below, above)


def _halved(net: LoweringContext, tensor: Tensor, times: int) -> Tensor:
    """Return the same reals in integers 2^times smaller, rounded half up."""
    if times == 0:
        return tensor
    ratio = np.array([math.ldexp(1.0, -times)])
    value = net.rescale(tensor, ratio, net.dtype(tensor), tensor.zero_point)
    return replace(tensor, value=value, scale=np.ldexp(tensor.scale, times))


def _with_one_batch_axis(
    net: LoweringContext, tensor: Tensor, batch: tuple[int, ...]
) -> Tensor:
    """Return matrices as one stack [B, rows, columns], broadcast to the full batch."""
    shape = net.shape(tensor)
    matrix = shape[-2:]
    missing_axes = len(batch) - len(shape) + 2
    own_batch = (1,) * missing_axes + shape[:-2]
    value = net.reshaped(tensor.value, (*own_batch, *matrix))
    if own_batch != batch:
        pairs = zip(batch, own_batch, strict=True)
        multiples = tuple(size // own_size for size, own_size in pairs)
        value = net.builder.emit("tile", value, multiples=(*multiples, 1, 1))
    count = int(np.prod(batch, dtype=np.int64))
    value = net.reshaped(value, (count, *matrix))
    return replace(tensor, value=value, layout=identity(3))
