"""Writes an average of octave codes over windows as a code, from coarse sums and fine ones.

A window has no exponent of its own, because windows overlap. So the numbers are summed twice, as
those of bands are (`bands.py`), each time by a channelwise convolution of ones with both halves.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import onnx_ir as ir

from mrt.exact.fixed_point import FloatArray
from mrt.graph.canonical_values import name_of, shape_of
from mrt.quantize.builder import Handle
from mrt.quantize.context import LoweringContext
from mrt.quantize.decoded import decoded
from mrt.quantize.octaves import FINER_BITS
from mrt.quantize.product_operand import LOW_BITS, halves
from mrt.quantize.roots import Arithmetic
from mrt.quantize.rules.bands import joined
from mrt.quantize.rules.code_products import code_times
from mrt.quantize.tensor import Tensor
from mrt.quantize.window import fit_window

TOO_GREAT = 2
"""By how many coarse steps a sum may be too great: half for its numbers, half for its low halves, each rounded up."""


def average_of_codes(
    net: LoweringContext, node: ir.Node, code: Tensor
) -> Tensor:
    """Return the averages of an AveragePool; padding is not counted."""
    sums = [_sums(net, node, code, finer) for finer in (0, FINER_BITS)]
    coarse, fine = (value for value, _ in sums)
    a = Arithmetic(net.builder, 4)
    value, octaves = joined(a, coarse, fine, np.full(1, TOO_GREAT))
    layout = net.to_nhwc(code).layout
    scale, counts = sums[1][1], _counts(node)
    total = Tensor(value, np.array([scale]), 0, layout, octaves=octaves)
    if net.options.scales == "real" and counts.min() == counts.max():
        return replace(total, scale=total.scale / counts.max())
    greatest = net.greatest_code(node.outputs[0])
    return code_times(net, total, 1 / counts, greatest)


def _sums(
    net: LoweringContext, node: ir.Node, code: Tensor, finer_bits: int
) -> tuple[Handle, float]:
    """Return the sums over windows in 30 bits, and the scale of their steps."""
    range_, scales = net.ranges.of(name_of(node.inputs[0])), net.options.scales
    numbers = decoded(net.builder, code, range_, scales, finer_bits)
    high, low = (
        _ones(net, node, part.tensor)
        for part in halves(net, net.to_nhwc(numbers))
    )
    count = math.prod(node.attributes["kernel_shape"].as_ints())
    shift = count.bit_length()
    a = Arithmetic(net.builder, 4)
    total = a.add(a.left(high, LOW_BITS - shift), a.right(low, shift))
    return total, math.ldexp(float(numbers.scale[0]), shift)


def _ones(net: LoweringContext, node: ir.Node, x: Tensor) -> Handle:
    """Return the sums over windows of i16, in i32."""
    kernel, stride, pads = (
        tuple(node.attributes[key].as_ints())
        for key in ("kernel_shape", "strides", "pads")
    )
    value, pad = fit_window(net, x.value, kernel, stride, pads)
    channels = net.shape(x)[-1]
    weights = net.constant(np.ones((channels, *kernel, 1), np.int8))
    bias = net.constant(np.zeros(channels, np.int32))
    return net.builder.emit(
        "conv2d",
        value,
        weights,
        bias,
        pad=pad,
        stride=stride,
        dilation=(1, 1),
        input_zp=0,
        groups=channels,
    )


def _counts(node: ir.Node) -> FloatArray:
    """Return how many places of each window are no padding, [1, 1, H, W]."""
    kernel, stride, pads = (
        node.attributes[key].as_ints()
        for key in ("kernel_shape", "strides", "pads")
    )
    size, windows = shape_of(node.inputs[0])[2:], shape_of(node.outputs[0])[2:]
    rows, columns = (
        _counts_along(
            kernel[axis], windows[axis], stride[axis], pads[axis], size[axis]
        )
        for axis in (0, 1)
    )
    return np.asarray(rows[:, None] * columns)[None, None]


def _counts_along(
    taps: int, windows: int, stride: int, before: int, size: int
) -> FloatArray:
    starts = np.arange(windows) * stride - before
    inside = np.minimum(starts + taps, size) - np.maximum(starts, 0)
    return inside.astype(np.float64)
