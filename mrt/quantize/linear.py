"""Sums of products: Conv, ConvTranspose, Gemm, MatMul. Each leaves an i32 accumulator with one scale per output channel."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import onnx_ir as ir

from cvm.program import Attribute, IntArray
from mrt.quantize.builder import Handle
from mrt.quantize.decompose import emit_in_parts
from mrt.quantize.fixed_point import FloatArray
from mrt.quantize.lowering import Lowering, identity, name_of, require_constant, shape_of
from mrt.quantize.rules import rule
from mrt.quantize.tensor import NHWC, Tensor
from mrt.quantize.weights import mean_error, quantize_bias, quantize_weights, weight_scales
from mrt.quantize.window import fit_window


@rule("Conv")
def conv(net: Lowering, node: ir.Node) -> None:
    """conv2d on NHWC; the window is first made to divide exactly."""
    x = net.image(net.operand(node.inputs[0]))
    weights, bias, scales = _parameters(net, node, x, require_constant(node, 1).transpose(0, 2, 3, 1))
    stride, dilation = (tuple(node.attributes[name].as_ints()) for name in ("strides", "dilations"))
    extent = tuple((size - 1) * step + 1 for size, step in zip(weights.shape[1:3], dilation, strict=True))
    value, pad = fit_window(net, x.value, extent, stride, tuple(node.attributes["pads"].as_ints()))
    attributes: dict[str, Attribute] = {"pad": pad, "stride": stride, "dilation": dilation, "input_zp": x.zero_point}
    total, shift = _convolve(net, "conv2d", value, weights, bias, node.attributes["group"].as_int(), attributes)
    net.define(node.outputs[0], Tensor(total, np.ldexp(scales, shift), 0, NHWC))


@rule("ConvTranspose")
def conv_transpose(net: Lowering, node: ir.Node) -> None:
    """conv2d_transpose on NHWC: ONNX's pads are negative output pads, its output_padding is added at the end."""
    x = net.image(net.operand(node.inputs[0]))
    groups = node.attributes["group"].as_int()
    source = require_constant(node, 1)  # [C, O/groups, KH, KW]
    per_group = source.reshape(groups, source.shape[0] // groups, *source.shape[1:])
    weights = per_group.transpose(0, 2, 3, 4, 1).reshape(-1, *source.shape[2:], source.shape[0] // groups)
    integers, bias, scales = _parameters(net, node, x, weights)
    top, left, bottom, right = node.attributes["pads"].as_ints()
    extra_height, extra_width = node.attributes["output_padding"].as_ints()
    attributes: dict[str, Attribute] = {
        "out_pad": (-top, extra_height - bottom, -left, extra_width - right),
        "stride": tuple(node.attributes["strides"].as_ints()),
        "input_zp": x.zero_point,
    }
    total, shift = _convolve(net, "conv2d_transpose", x.value, integers, bias, groups, attributes)
    net.define(node.outputs[0], Tensor(total, np.ldexp(scales, shift), 0, NHWC))


@rule("Gemm")
def gemm(net: Lowering, node: ir.Node) -> None:
    """dense: x[M,K], w[N,K], b[N]."""
    x = net.logical(net.operand(node.inputs[0]))
    weights, bias, scales = _parameters(net, node, x, require_constant(node, 1))

    def part(start: int, stop: int) -> Handle:
        piece = _last_axis(net, x.value, start, stop)
        w = net.constant(weights[:, start:stop])
        b = net.constant(bias if start == 0 else np.zeros_like(bias))
        return net.builder.emit("dense", piece, w, b, input_zp=x.zero_point)

    total, shift = emit_in_parts(net.builder, weights.shape[1], part)
    net.define(node.outputs[0], Tensor(total, np.ldexp(scales, shift), 0, identity(2)))


@rule("MatMul")
def matmul(net: Lowering, node: ir.Node) -> None:
    """matmul of two computed tensors, batches flattened to one axis."""
    a, b = (net.logical(net.operand(value)) for value in node.inputs)
    if net.dtype(a) != net.dtype(b):  # 16 bits only where both have them
        a, b = (net.logical(net.bring(t, net.format(v, head=False))) for t, v in zip((a, b), node.inputs, strict=True))
    shape = shape_of(node.outputs[0])
    batch = shape[:-2]
    a3, b3 = (_batched(net, tensor, batch) for tensor in (a, b))
    length = net.shape(a3)[2]

    def part(start: int, stop: int) -> Handle:
        left = _last_axis(net, a3.value, start, stop)
        right = b3.value
        if stop - start < length:
            right = net.builder.emit("slice", right, start=(0, start, 0), size=_sized(net.shape(b3), 1, stop - start))
        return net.builder.emit("matmul", left, right, a_zp=a3.zero_point, b_zp=b3.zero_point)

    total, shift = emit_in_parts(net.builder, length, part)
    value = net.reshaped(total, shape)
    net.define(node.outputs[0], Tensor(value, np.ldexp(a.scale * b.scale, shift), 0, identity(len(shape))))


def _parameters(net: Lowering, node: ir.Node, x: Tensor, weights: FloatArray) -> tuple[IntArray, IntArray, FloatArray]:
    """Integer weights and bias, and the scale of the accumulator, per output channel."""
    bias = require_constant(node, 2)
    bits = net.options.weight_bits_of(name_of(node.outputs[0]))
    input_scale = float(x.scale[0])
    scales = weight_scales(weights, bias, input_scale, bits=bits, scales=net.options.scales)
    accumulator = scales * input_scale
    integers = quantize_weights(weights, scales, bits=bits)
    means = net.table.channel_means.get(name_of(node.inputs[0]))
    if net.options.bias_correction and means is not None:
        bias = bias - mean_error(integers, weights, scales, means)
    return integers, quantize_bias(bias, accumulator), accumulator


def _convolve(
    net: Lowering,
    name: str,
    value: Handle,
    weights: IntArray,
    bias: IntArray,
    groups: int,
    attributes: Mapping[str, Attribute],
) -> tuple[Handle, int]:
    """A convolution, cut where the proof asks for it: along the input channels, or (grouped) by kernel taps."""
    channels = weights.shape[3]
    by_channel = groups == 1 and channels > 1
    taps = np.arange(weights.shape[1] * weights.shape[2]).reshape(1, *weights.shape[1:3], 1)

    def part(start: int, stop: int) -> Handle:
        if by_channel:
            piece, w = _last_axis(net, value, start, stop), weights[..., start:stop]
        else:
            piece, w = value, np.where((taps >= start) & (taps < stop), weights, 0).astype(np.int8)
        b = net.constant(bias if start == 0 else np.zeros_like(bias))
        return net.builder.emit(name, piece, net.constant(w), b, groups=groups, **attributes)

    return emit_in_parts(net.builder, channels if by_channel else taps.size, part)


def _last_axis(net: Lowering, value: Handle, start: int, stop: int) -> Handle:
    """The entries [start, stop) of the last axis."""
    shape = net.builder.types[value].shape
    if stop - start == shape[-1]:
        return value
    begin = (0,) * (len(shape) - 1) + (start,)
    return net.builder.emit("slice", value, start=begin, size=_sized(shape, len(shape) - 1, stop - start))


def _sized(shape: tuple[int, ...], axis: int, size: int) -> tuple[int, ...]:
    return (*shape[:axis], size, *shape[axis + 1 :])


def _batched(net: Lowering, tensor: Tensor, batch: tuple[int, ...]) -> Tensor:
    """A matrix, or a stack of them, as [B, rows, columns] with the whole batch written out."""
    shape = net.shape(tensor)
    rows = shape[-2:]
    own = (1,) * (len(batch) - len(shape) + 2) + shape[:-2]
    value = net.reshaped(tensor.value, (*own, *rows))
    if own != batch:
        multiples = tuple(whole // part for whole, part in zip(batch, own, strict=True))
        value = net.builder.emit("tile", value, multiples=(*multiples, 1, 1))
    count = int(np.prod(batch, dtype=np.int64))
    return replace(tensor, value=net.reshaped(value, (count, *rows)), layout=identity(3))
