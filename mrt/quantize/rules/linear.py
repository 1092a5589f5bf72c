"""Rules of Conv, ConvTranspose and Gemm: constant weights times a computed value, plus a bias.

Each rule leaves an i32 accumulator with one scale per output channel:

    accumulator = sum of weight * (x - zero point of x) + bias
    real        = scale of x * scale of the channel's weights * accumulator + centre

`layer_weights.py` makes the integer weights. A sum that is not proven to fit i32 is
written as several shorter ones (`decompose.py`); weights beyond 8 bits are two products
each (`wide_weights.py`). Both may leave the accumulator in steps of 2^shift, which goes
into the scale.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import onnx_ir as ir

from cvm.errors import Unproven
from cvm.program import Attribute, IntArray
from mrt.exact.fixed_point import FloatArray
from mrt.graph.canonical_values import require_constant, shape_of
from mrt.quantize.builder import Handle
from mrt.quantize.channel_centres import output_centres
from mrt.quantize.context import LoweringContext
from mrt.quantize.decompose import (
    PartialSum,
    add_parts,
    provable_parts,
    slice_last_axis,
)
from mrt.quantize.dither import dither_offsets
from mrt.quantize.layer_weights import LayerWeights, integer_weights
from mrt.quantize.product_operand import (
    OperandPart,
    layer_operands,
    product_operand,
)
from mrt.quantize.rounding import LayerSteps
from mrt.quantize.rules.bands import (
    are_bands,
    bands_of,
    without_bias,
)
from mrt.quantize.rules.registry import rule
from mrt.quantize.tensor import (
    NHWC,
    Tensor,
    identity,
)
from mrt.quantize.wide_weights import Products, partial_sums, sum_of_products
from mrt.quantize.window import fit_window, tap_counts


@rule("Conv")
def conv(net: LoweringContext, node: ir.Node) -> LayerSteps:
    """Write a conv2d on NHWC; `fit_window` first makes the windows cover the input exactly.

    Centres and dither offsets of the output are part of the bias.
    """
    operands = layer_operands(net, node, NHWC)
    x = operands[0].tensor
    centres = output_centres(net, node)
    layer = yield from integer_weights(
        net,
        node,
        x,
        require_constant(node, 1).transpose(
            0, 2, 3, 1
        ),  # [O, KH, KW, C/groups]
        shares=_tap_shares(node),
        centres=centres - dither_offsets(net, node),
    )
    if are_bands(net, node):
        unbiased = without_bias(layer)
        sum_of = partial(_sum_of_windows, net, node, unbiased)
        net.define(node.outputs[0], bands_of(net, node, operands, sum_of))
        return
    total = _sum_of_windows(net, node, layer, operands)
    net.define(node.outputs[0], replace(total, centres=centres))


def _sum_of_windows(
    net: LoweringContext,
    node: ir.Node,
    layer: LayerWeights,
    operands: Sequence[OperandPart],
) -> Tensor:
    total, shift = convolve(net, node, operands, layer)
    scales = np.ldexp(layer.scales, shift - operands[0].exponent)
    return Tensor(total, scales, 0, NHWC)


def convolve(
    net: LoweringContext,
    node: ir.Node,
    operands: Sequence[OperandPart],
    layer: LayerWeights,
) -> tuple[Handle, int]:
    """Emit the accumulator of a Conv on NHWC in steps of 2^shift; return it and the shift.

    The steps are those of the finest operand.
    """

    def products_of(x: Tensor) -> Products:
        return _products(net, *_window_of(net, node, x))

    return _sum_over(net, operands, layer, products_of)


def _sum_over(
    net: LoweringContext,
    operands: Sequence[OperandPart],
    layer: LayerWeights,
    products_of: Callable[[Tensor], Products],
) -> tuple[Handle, int]:
    """Emit the sum of the products of all parts of an operand; the bias is added to the first."""
    parts: list[PartialSum] = []
    bias = layer.bias
    for operand in operands:
        products = products_of(operand.tensor)
        parts += partial_sums(layer.weights, bias, products, operand.exponent)
        bias = np.zeros_like(bias)
    return add_parts(net.builder, parts)


def _window_of(
    net: LoweringContext, node: ir.Node, x: Tensor
) -> tuple[_Convolution, Handle]:
    """Return the instruction of a Conv, and x as its windows cover it."""
    stride = tuple(node.attributes["strides"].as_ints())
    dilation = tuple(node.attributes["dilations"].as_ints())
    pads = tuple(node.attributes["pads"].as_ints())
    extent = _dilated(shape_of(node.inputs[1])[2:], dilation)
    value, pad = fit_window(net, x.value, extent, stride, pads)
    attributes: dict[str, Attribute] = {
        "pad": pad,
        "stride": stride,
        "dilation": dilation,
        "input_zp": x.zero_point,
    }
    groups = node.attributes["group"].as_int()
    return _Convolution("conv2d", groups, attributes), value


def _dilated(
    kernel: tuple[int, ...], dilation: tuple[int, ...]
) -> tuple[int, ...]:
    """Return the number of rows and columns that a dilated kernel spans."""
    pairs = zip(kernel, dilation, strict=True)
    return tuple((size - 1) * step + 1 for size, step in pairs)


@rule("ConvTranspose")
def conv_transpose(net: LoweringContext, node: ir.Node) -> LayerSteps:
    """Write a conv2d_transpose on NHWC.

    The instruction's out_pad adds rows and columns to the output. ONNX's pads remove
    them, so they are negative out_pads; ONNX's output_padding is added at the bottom
    and right.
    """
    x = net.to_nhwc(product_operand(net, node.inputs[0]))
    groups = node.attributes["group"].as_int()
    layer = yield from integer_weights(
        net,
        node,
        x,
        _outputs_first(require_constant(node, 1), groups),
        shares=_tap_shares(node, transposed=True),
    )
    wanted = _wanted_out_pad(node)
    out_pad = _allowed_out_pad(wanted, layer.weights.shape[1:3])
    stride = tuple(node.attributes["strides"].as_ints())
    convolution = _Convolution(
        "conv2d_transpose",
        groups,
        {"out_pad": out_pad, "stride": stride, "input_zp": x.zero_point},
    )
    products = _products(net, convolution, x.value)
    total, shift = sum_of_products(
        net.builder, layer.weights, layer.bias, products
    )
    float_shape = shape_of(node.outputs[0])
    size = tuple(float_shape[axis] for axis in NHWC)
    if size != net.builder.types[total].shape:
        start = (0, out_pad[0] - wanted[0], out_pad[2] - wanted[2], 0)
        total = net.builder.emit("slice", total, start=start, size=size)
    net.define(
        node.outputs[0], Tensor(total, np.ldexp(layer.scales, shift), 0, NHWC)
    )


def _wanted_out_pad(node: ir.Node) -> tuple[int, ...]:
    """Return out_pad (top, bottom, left, right) of a ConvTranspose."""
    top, left, bottom, right = node.attributes["pads"].as_ints()
    extra_height, extra_width = node.attributes["output_padding"].as_ints()
    return -top, extra_height - bottom, -left, extra_width - right


def _allowed_out_pad(
    wanted: tuple[int, ...], kernel: tuple[int, ...]
) -> tuple[int, ...]:
    """Return the wanted out_pad, limited so that a row and a column of the kernel remain.

    SPEC conv2d_transpose.C5 requires that; a slice removes the rest afterwards.
    """
    height, width = kernel
    sizes = (height, height, width, width)
    pairs = zip(wanted, sizes, strict=True)
    return tuple(max(amount, 1 - size) for amount, size in pairs)


def _outputs_first(weights: FloatArray, groups: int) -> FloatArray:
    """Return weights [C, O/groups, KH, KW] as [O, KH, KW, C/groups]."""
    inputs = weights.shape[0] // groups
    per_group = weights.reshape(groups, inputs, *weights.shape[1:])
    ordered = per_group.transpose(0, 2, 3, 4, 1)
    return ordered.reshape(-1, *weights.shape[2:], inputs)


def _tap_shares(node: ir.Node, *, transposed: bool = False) -> FloatArray:
    """Return the share of a convolution's outputs for which a tap meets an input, [KH, KW, 1].

    For the other outputs the tap lies on padding.
    """
    rows = _tap_shares_along(node, 0, transposed)
    columns = _tap_shares_along(node, 1, transposed)
    return (rows[:, None] * columns)[..., None]


def _tap_shares_along(node: ir.Node, axis: int, transposed: bool) -> FloatArray:
    """Return the shares along rows (axis 0) or columns (axis 1) alone."""
    inputs = shape_of(node.inputs[0])[2 + axis]
    outputs = shape_of(node.outputs[0])[2 + axis]
    windows, inside = (inputs, outputs) if transposed else (outputs, inputs)
    counts = tap_counts(
        shape_of(node.inputs[1])[2 + axis],
        node.attributes["dilations"].as_ints()[axis],
        windows,
        node.attributes["strides"].as_ints()[axis],
        node.attributes["pads"].as_ints()[axis],
        inside,
    )
    return np.asarray(counts / outputs)


@rule("Gemm")
def gemm(net: LoweringContext, node: ir.Node) -> LayerSteps:
    """Write a dense: x[M,K], w[N,K], b[N]; for the high and the low half of a wide operand, one each."""
    operands = layer_operands(net, node, identity(2))
    x = operands[0].tensor
    layer = yield from integer_weights(net, node, x, require_constant(node, 1))
    if are_bands(net, node):
        sum_of = partial(_sum_of_rows, net, without_bias(layer))
        net.define(node.outputs[0], bands_of(net, node, operands, sum_of))
        return
    net.define(node.outputs[0], _sum_of_rows(net, layer, operands))


def _sum_of_rows(
    net: LoweringContext, layer: LayerWeights, operands: Sequence[OperandPart]
) -> Tensor:
    total, shift = _sum_over(
        net, operands, layer, lambda x: partial(_dense_parts, net, x)
    )
    scales = np.ldexp(layer.scales, shift - operands[0].exponent)
    return Tensor(total, scales, 0, identity(2))


def _dense_parts(
    net: LoweringContext, x: Tensor, weights: IntArray, bias: IntArray
) -> list[Handle]:
    """Emit as few dense instructions as can be proven, each over a range of the inputs."""

    def emit(start: int, stop: int) -> Handle:
        piece = slice_last_axis(net.builder, x.value, start, stop)
        weights_of_piece = net.constant(weights[:, start:stop])
        bias_of_piece = net.constant(_bias_of_part(bias, start))
        return net.builder.emit(
            "dense",
            piece,
            weights_of_piece,
            bias_of_piece,
            input_zp=x.zero_point,
        )

    return provable_parts(weights.shape[1], emit)


@dataclass(frozen=True)
class _Convolution:
    """An instruction of the conv2d family and its attributes without `groups`."""

    instruction: str
    groups: int
    attributes: Mapping[str, Attribute]

    def emit(
        self,
        net: LoweringContext,
        value: Handle,
        weights: IntArray,
        bias: IntArray,
    ) -> Handle:
        return net.builder.emit(
            self.instruction,
            value,
            net.constant(weights),
            net.constant(bias),
            groups=self.groups,
            **self.attributes,
        )


def _products(
    net: LoweringContext, convolution: _Convolution, value: Handle
) -> Products:
    """Return what emits a convolution of a value in as few parts as can be proven."""

    def products(weights: IntArray, bias: IntArray) -> list[Handle]:
        def emit(piece: Handle, weights: IntArray, start: int) -> Handle:
            bias_of_piece = _bias_of_part(bias, start)
            return convolution.emit(net, piece, weights, bias_of_piece)

        if convolution.groups == 1 and weights.shape[3] > 1:
            try:
                return _parts_by_channels(net, value, weights, emit)
            except Unproven:  # even one channel alone cannot be proven
                pass
        return _parts_by_products(value, weights, emit)

    return products


_EmitConvolution = Callable[[Handle, IntArray, int], Handle]
"""Emits a convolution of a piece of the input by weights.

The number is that of the sum's terms before this part.
"""


def _parts_by_channels(
    net: LoweringContext,
    value: Handle,
    weights: IntArray,
    emit: _EmitConvolution,
) -> list[Handle]:
    """Emit as few convolutions as can be proven, each over a range of the input channels."""

    def emit_channels(start: int, stop: int) -> Handle:
        piece = slice_last_axis(net.builder, value, start, stop)
        return emit(piece, weights[..., start:stop], start)

    return provable_parts(weights.shape[3], emit_channels)


def _parts_by_products(
    value: Handle, weights: IntArray, emit: _EmitConvolution
) -> list[Handle]:
    """Emit as few convolutions as can be proven, each with some of a window's products.

    The weights of all other products are set to 0.
    """
    order = np.arange(weights[0].size).reshape(1, *weights.shape[1:])

    def emit_products(start: int, stop: int) -> Handle:
        in_part = (order >= start) & (order < stop)
        weights_of_part = np.where(in_part, weights, 0).astype(np.int8)
        return emit(value, weights_of_part, start)

    return provable_parts(order.size, emit_products)


def _bias_of_part(bias: IntArray, start: int) -> IntArray:
    """Return the bias for the first part of a sum, 0 for the others."""
    return bias if start == 0 else np.zeros_like(bias)
