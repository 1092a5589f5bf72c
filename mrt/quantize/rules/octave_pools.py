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
from mrt.graph.canonical_values import shape_of
from mrt.quantize.builder import Handle
from mrt.quantize.context import LoweringContext
from mrt.quantize.product_operand import LOW_BITS, halves
from mrt.quantize.roots import Arithmetic
from mrt.quantize.rules.bands import fine_numbers, joined
from mrt.quantize.rules.octave_products import code_times
from mrt.quantize.tensor import Tensor
from mrt.quantize.window import fit_window

TOO_GREAT = 2
"""By how many coarse steps a sum may be too great: half for its numbers, half for its low halves, each rounded up."""


def average_of_codes(net: LoweringContext, node: ir.Node) -> Tensor:
    """Return the averages of an AveragePool of a code; padding is not counted."""
    coarse = _sums(net, node, net.as_computed(node.inputs[0]))
    fine = _sums(net, node, fine_numbers(net, node))
    a = Arithmetic(net.builder, 4)
    error_bound = np.full(1, TOO_GREAT)
    value, octaves = joined(a, coarse.value, fine.value, error_bound)
    total, counts = replace(fine, value=value, octaves=octaves), _counts(node)
    if net.options.scales == "real" and counts.min() == counts.max():
        return replace(total, scale=total.scale / counts.max())
    greatest = net.greatest_expected(node.outputs[0])
    return code_times(net, total, 1 / counts, greatest)


def _sums(net: LoweringContext, node: ir.Node, numbers: Tensor) -> Tensor:
    """Return the sums over windows of numbers in 30 bits."""
    x = net.to_nhwc(numbers)
    high, low = (_ones(net, node, part.tensor) for part in halves(net, x))
    count = math.prod(node.attributes["kernel_shape"].as_ints())
    shift = count.bit_length()
    a = Arithmetic(net.builder, 4)
    total = a.add(a.left(high, LOW_BITS - shift), a.right(low, shift))
    return replace(x, value=total, scale=np.ldexp(x.scale, shift))


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
