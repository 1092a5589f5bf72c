"""Sums of products: Conv, ConvTranspose, Gemm, MatMul. Each leaves an i32 accumulator with one scale per output channel."""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Mapping
from dataclasses import replace

import numpy as np
import onnx_ir as ir

from cvm.errors import Unproven
from cvm.program import DTYPES, Attribute, IntArray
from mrt.exact.fixed_point import FloatArray
from mrt.graph.canonical_values import constant_of, name_of, require_constant, shape_of
from mrt.quantize.builder import Handle
from mrt.quantize.channel_centres import output_centres, taken_up
from mrt.quantize.context import LoweringContext, identity
from mrt.quantize.decompose import emit_in_parts, provable_parts
from mrt.quantize.dither import dither_offsets
from mrt.quantize.rounding import LayerSteps, RoundedLayer, WeightedLayer
from mrt.quantize.rules.registry import rule
from mrt.quantize.tensor import NHWC, Tensor
from mrt.quantize.weights import quantize_bias, quantize_weights, weight_scales
from mrt.quantize.wide_weights import sum_of_products
from mrt.quantize.window import fit_window, tap_counts

MATMUL_PARTS = 4
NO_CENTRES = np.zeros(1)


@rule("Conv")
def conv(net: LoweringContext, node: ir.Node) -> LayerSteps:
    """conv2d on NHWC; the window is first made to divide exactly."""
    x = net.image(net.operand(node.inputs[0]))
    centres, source = (
        output_centres(net, node),
        require_constant(node, 1).transpose(0, 2, 3, 1),
    )
    weights, bias, scales = yield from _parameters(
        net, node, x, source, _shares(node), centres - dither_offsets(net, node)
    )
    stride, dilation = (
        tuple(node.attributes[name].as_ints()) for name in ("strides", "dilations")
    )
    extent = tuple(
        (size - 1) * step + 1
        for size, step in zip(weights.shape[1:3], dilation, strict=True)
    )
    value, pad = fit_window(
        net, x.value, extent, stride, tuple(node.attributes["pads"].as_ints())
    )
    attributes: dict[str, Attribute] = {
        "pad": pad,
        "stride": stride,
        "dilation": dilation,
        "input_zp": x.zero_point,
    }
    total, shift = _convolve(
        net,
        "conv2d",
        value,
        weights,
        bias,
        node.attributes["group"].as_int(),
        attributes,
    )
    net.define(
        node.outputs[0],
        Tensor(total, np.ldexp(scales, shift), 0, NHWC, centres=centres),
    )


@rule("ConvTranspose")
def conv_transpose(net: LoweringContext, node: ir.Node) -> LayerSteps:
    """conv2d_transpose on NHWC: ONNX's pads are negative output pads, its output_padding is added at the end."""
    x = net.image(net.operand(node.inputs[0]))
    groups, stride = (
        node.attributes["group"].as_int(),
        tuple(node.attributes["strides"].as_ints()),
    )
    source = _outputs_first(require_constant(node, 1), groups)
    weights, bias, scales = yield from _parameters(
        net, node, x, source, _shares(node, transposed=True)
    )
    top, left, bottom, right = node.attributes["pads"].as_ints()
    extra_height, extra_width = node.attributes["output_padding"].as_ints()
    wanted = (-top, extra_height - bottom, -left, extra_width - right)
    # An output pad must leave something of the kernel (SPEC conv2d_transpose.C5); the rest is cut off afterwards.
    out_pad = tuple(
        max(amount, 1 - weights.shape[1 + side // 2])
        for side, amount in enumerate(wanted)
    )
    attributes: dict[str, Attribute] = {
        "out_pad": out_pad,
        "stride": stride,
        "input_zp": x.zero_point,
    }
    total, shift = _convolve(
        net, "conv2d_transpose", x.value, weights, bias, groups, attributes
    )
    size = tuple(shape_of(node.outputs[0])[axis] for axis in NHWC)
    if size != net.builder.types[total].shape:
        total = net.builder.emit(
            "slice",
            total,
            start=(0, out_pad[0] - wanted[0], out_pad[2] - wanted[2], 0),
            size=size,
        )
    net.define(node.outputs[0], Tensor(total, np.ldexp(scales, shift), 0, NHWC))


def _outputs_first(weights: FloatArray, groups: int) -> FloatArray:
    """[C, O/groups, KH, KW] as [O, KH, KW, C/groups]."""
    inputs = weights.shape[0] // groups
    per_group = weights.reshape(groups, inputs, *weights.shape[1:])
    return per_group.transpose(0, 2, 3, 4, 1).reshape(-1, *weights.shape[2:], inputs)


@rule("Gemm")
def gemm(net: LoweringContext, node: ir.Node) -> LayerSteps:
    """dense: x[M,K], w[N,K], b[N]."""
    x = net.logical(net.operand(node.inputs[0]))
    weights, bias, scales = yield from _parameters(
        net, node, x, require_constant(node, 1)
    )

    def products(w: IntArray, b: IntArray) -> list[Handle]:
        def part(start: int, stop: int) -> Handle:
            piece = _last_axis(net, x.value, start, stop)
            operands = (
                net.constant(w[:, start:stop]),
                net.constant(b if start == 0 else np.zeros_like(b)),
            )
            return net.builder.emit("dense", piece, *operands, input_zp=x.zero_point)

        return provable_parts(w.shape[1], part)

    total, shift = sum_of_products(net.builder, weights, bias, products)
    net.define(node.outputs[0], Tensor(total, np.ldexp(scales, shift), 0, identity(2)))


@rule("MatMul")
def matmul(net: LoweringContext, node: ir.Node) -> None:
    """matmul of two tensors, batches flattened to one axis."""
    a, b = _coarser(net, *_matrices(net, node))
    batch = np.broadcast_shapes(net.shape(a)[:-2], net.shape(b)[:-2])
    a3, b3 = (_batched(net, tensor, batch) for tensor in (a, b))
    length = net.shape(a3)[2]

    def part(start: int, stop: int) -> Handle:
        left = _last_axis(net, a3.value, start, stop)
        right = b3.value
        if stop - start < length:
            right = net.builder.emit(
                "slice",
                right,
                start=(0, start, 0),
                size=_sized(net.shape(b3), 1, stop - start),
            )
        return net.builder.emit(
            "matmul", left, right, a_zp=a3.zero_point, b_zp=b3.zero_point
        )

    total, shift = emit_in_parts(net.builder, length, part)
    shape = shape_of(node.outputs[0])
    scale = np.ldexp(a.scale * b.scale, shift)
    net.define(
        node.outputs[0],
        Tensor(net.reshaped(total, shape), scale, 0, identity(len(shape))),
    )


def _matrices(net: LoweringContext, node: ir.Node) -> tuple[Tensor, Tensor]:
    """Both operands with two axes or more, in 16 bits if a computed one has them or a constant one is to."""
    computed = {
        index: net.logical(net.operand(value))
        for index, value in enumerate(node.inputs)
        if constant_of(value) is None
    }
    fine = (
        len(computed) < 2 and net.options.weight_bits_of(name_of(node.outputs[0])) > 8
    )
    dtype = (
        "i16"
        if fine or any(net.dtype(tensor) == "i16" for tensor in computed.values())
        else "i8"
    )
    left, right = (
        net.widen(computed[index], dtype)
        if index in computed
        else _constant_matrix(net, node, index, dtype)
        for index in (0, 1)
    )
    return _with_two_axes(net, left, (1, -1)), _with_two_axes(net, right, (-1, 1))


def _coarser(net: LoweringContext, *matrices: Tensor) -> list[Tensor]:
    """Both, the one with the greater integers halved until few parts can hold the sum of products.

    i32 holds no two products of full 16 bits, so 512 terms would need 512 parts; at 12 bits four do.
    """
    length = net.shape(matrices[0])[-1]
    ends = [net.builder.bounds[tensor.value] for tensor in matrices]
    sizes = [
        max(abs(end.min - tensor.zero_point), abs(end.max - tensor.zero_point))
        for end, tensor in zip(ends, matrices, strict=True)
    ]
    halvings = [0, 0]
    while length * sizes[0] * sizes[1] >= MATMUL_PARTS * 2**31:
        greater = 0 if sizes[0] >= sizes[1] else 1
        halvings[greater] += 1
        sizes[greater] = (sizes[greater] + 1) // 2
    return [
        _halved(net, tensor, times)
        for tensor, times in zip(matrices, halvings, strict=True)
    ]


def _halved(net: LoweringContext, tensor: Tensor, times: int) -> Tensor:
    if times == 0:
        return tensor
    value = net.rescale(
        tensor,
        np.array([math.ldexp(1.0, -times)]),
        net.dtype(tensor),
        tensor.zero_point,
    )
    return replace(tensor, value=value, scale=np.ldexp(tensor.scale, times))


def _constant_matrix(
    net: LoweringContext, node: ir.Node, index: int, dtype: str
) -> Tensor:
    """Weights of a product: one scale for each column on the right, where it lasts; one for all on the left."""
    array, bits = (
        require_constant(node, index),
        net.options.weight_bits_of(name_of(node.outputs[0])),
    )
    rows = np.moveaxis(array, -1, 0) if index == 1 else array[None]
    scales = _weight_scales(net, rows, np.zeros(len(rows)), 1.0, bits)
    integers = quantize_weights(rows, scales, bits=bits).astype(DTYPES[dtype])
    arranged = np.moveaxis(integers, 0, -1) if index == 1 else integers[0]
    return Tensor(net.constant(arranged), scales, 0, identity(array.ndim))


def _with_two_axes(
    net: LoweringContext, tensor: Tensor, vector: tuple[int, int]
) -> Tensor:
    """A vector as a row or a column; everything else as it is."""
    if len(tensor.layout) > 1:
        return tensor
    shape = tuple(net.shape(tensor)[0] if size == -1 else size for size in vector)
    return replace(tensor, value=net.reshaped(tensor.value, shape), layout=identity(2))


def _parameters(
    net: LoweringContext,
    node: ir.Node,
    x: Tensor,
    weights: FloatArray,
    shares: FloatArray | float = 1.0,
    centres: FloatArray = NO_CENTRES,
) -> Generator[WeightedLayer, RoundedLayer, tuple[IntArray, IntArray, FloatArray]]:
    """Integer weights and bias, and the scale of the accumulator, per output channel; yields the layer to have it rounded.

    Where the input has a scale for each channel, the weights take up how it differs from the largest; centres go into the bias.
    """
    bits = net.options.weight_bits_of(name_of(node.outputs[0]))
    bias = require_constant(node, 2) + taken_up(x, weights) - centres
    weights = _by_channel(weights, x)
    input_scale = float(x.scale.max())
    scales = _weight_scales(net, weights, bias, input_scale, bits)
    rounded = yield WeightedLayer(node, x, weights, bias, centres, bits, shares, scales)
    accumulator = rounded.scales * input_scale
    return rounded.weights, quantize_bias(rounded.bias, accumulator), accumulator


def _weight_scales(
    net: LoweringContext,
    weights: FloatArray,
    bias: FloatArray,
    input_scale: float,
    bits: int,
) -> FloatArray:
    options = net.options
    return weight_scales(
        weights,
        bias,
        input_scale,
        bits=bits,
        scales=options.scales,
        per_channel=options.per_channel,
    )


def _by_channel(weights: FloatArray, x: Tensor) -> FloatArray:
    """The weights [O,..,C/groups] for an input whose channels all have the largest one's scale."""
    if x.per_tensor:
        return weights
    inputs = weights.shape[-1]
    relative = (x.scale / x.scale.max()).reshape(-1, inputs)  # [groups, C/groups]
    per_output: FloatArray = np.repeat(relative, len(weights) // len(relative), axis=0)
    return np.multiply(
        weights, per_output.reshape(len(weights), *[1] * (weights.ndim - 2), inputs)
    )


def _shares(node: ir.Node, *, transposed: bool = False) -> FloatArray:
    """[KH, KW, 1]: at what share of a convolution's outputs each tap meets an input and not padding."""
    inputs, outputs = shape_of(node.inputs[0])[2:], shape_of(node.outputs[0])[2:]
    windows, inside = (inputs, outputs) if transposed else (outputs, inputs)
    stride, dilation, pads = (
        node.attributes[name].as_ints() for name in ("strides", "dilations", "pads")
    )
    taps = shape_of(node.inputs[1])[2:]
    rows, columns = (
        tap_counts(taps[i], dilation[i], windows[i], stride[i], pads[i], inside[i])
        / outputs[i]
        for i in (0, 1)
    )
    return (rows[:, None] * columns)[..., None]


def _convolve(
    net: LoweringContext,
    name: str,
    value: Handle,
    weights: IntArray,
    bias: IntArray,
    groups: int,
    attributes: Mapping[str, Attribute],
) -> tuple[Handle, int]:
    """A convolution, cut where the proof asks for it; its sum and the shift of that."""

    def emit(piece: Handle, w: IntArray, b: IntArray) -> Handle:
        return net.builder.emit(
            name, piece, net.constant(w), net.constant(b), groups=groups, **attributes
        )

    def products(w: IntArray, b: IntArray) -> list[Handle]:
        return _convolution_parts(net, value, w, b, groups, emit)

    return sum_of_products(net.builder, weights, bias, products)


def _convolution_parts(
    net: LoweringContext,
    value: Handle,
    weights: IntArray,
    bias: IntArray,
    groups: int,
    emit: Callable[[Handle, IntArray, IntArray], Handle],
) -> list[Handle]:
    """As few parts as can be proven: cut along the input channels, else by single products of a window."""

    def bias_of(start: int) -> IntArray:
        return bias if start == 0 else np.zeros_like(bias)

    def channels(start: int, stop: int) -> Handle:
        return emit(
            _last_axis(net, value, start, stop),
            weights[..., start:stop],
            bias_of(start),
        )

    def products(start: int, stop: int) -> Handle:
        chosen = np.where((order >= start) & (order < stop), weights, 0).astype(np.int8)
        return emit(value, chosen, bias_of(start))

    if groups == 1 and weights.shape[3] > 1:
        try:
            return provable_parts(weights.shape[3], channels)
        except Unproven:  # one channel alone is too much
            pass
    order = np.arange(weights[0].size).reshape(1, *weights.shape[1:])
    return provable_parts(order.size, products)


def _last_axis(net: LoweringContext, value: Handle, start: int, stop: int) -> Handle:
    """The entries [start, stop) of the last axis."""
    shape = net.builder.types[value].shape
    if stop - start == shape[-1]:
        return value
    begin = (0,) * (len(shape) - 1) + (start,)
    return net.builder.emit(
        "slice", value, start=begin, size=_sized(shape, len(shape) - 1, stop - start)
    )


def _sized(shape: tuple[int, ...], axis: int, size: int) -> tuple[int, ...]:
    return (*shape[:axis], size, *shape[axis + 1 :])


def _batched(net: LoweringContext, tensor: Tensor, batch: tuple[int, ...]) -> Tensor:
    """A matrix, or a stack of them, as [B, rows, columns] with the whole batch written out."""
    shape = net.shape(tensor)
    rows = shape[-2:]
    own = (1,) * (len(batch) - len(shape) + 2) + shape[:-2]
    value = net.reshaped(tensor.value, (*own, *rows))
    if own != batch:
        multiples = tuple(whole // part for whole, part in zip(batch, own, strict=True))
        value = net.builder.emit("tile", value, multiples=(*multiples, 1, 1))
    count = int(np.prod(batch, dtype=np.int64))
    return replace(
        tensor, value=net.reshaped(value, (count, *rows)), layout=identity(3)
    )
