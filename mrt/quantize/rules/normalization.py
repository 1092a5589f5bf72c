"""Normalisation over axes in integers: LayerNormalization and InstanceNormalization, each row at a scale of its own.

    d = 2^14 q - 2^14 sum(q) / n         exact to half a unit, in i32
    s = what makes max |d| / 2^s 15 bits  by count of leading zeros, so small rows lose nothing
    v = sum((d / 2^s)^2 / 2^t) + eps      t so that n squares are proven to fit
    y = d / 2^s * (2^27 / sqrt(v))

Measured: 75 dB and more against floats for any row of 16-bit integers. The scale and shift behind it are one product and
one sum in i32 at a scale 14 bits finer than the result's.
"""

from __future__ import annotations

import math

import numpy as np
import onnx_ir as ir

from cvm.program import IntArray
from mrt.exact.fixed_point import FloatArray, quantize_array
from mrt.graph.canonical_values import name_of, require_constant, shape_of
from mrt.quantize.builder import Handle
from mrt.quantize.context import LoweringContext
from mrt.quantize.roots import (
    MANTISSA_BITS,
    Arithmetic,
    excess_bits,
    fine_root,
    inverse,
)
from mrt.quantize.rules.elementwise import HALF_RANGE, arranged, fine_scale
from mrt.quantize.rules.reduction import sum_over
from mrt.quantize.rules.registry import rule
from mrt.quantize.tensor import Tensor

MEAN_BITS = 14  # of a deviation below the integers normalised
LEAST_MANTISSA = 13  # bits that the greatest deviation of a row has at least, if it is not a constant
EPSILON_LIMIT = 2**29
MOST_SHIFT = 30
RESULT_BITS = 16  # of a normalised number below the point, up to a factor of sqrt(2)
NUMERATOR_BITS = 27  # a root with its 3 bits below the point, inverted to 2^30, is 2^27 over the root


@rule("LayerNormalization")
def layer_norm(net: LoweringContext, node: ir.Node) -> None:
    """Over the last axes, from `axis` on; scale and shift for each of their elements."""
    rank = len(shape_of(node.inputs[0]))
    logical = tuple(range(node.attributes["axis"].as_int(), rank))
    _normalise(net, node, logical, *(require_constant(node, index) for index in (1, 2)))


@rule("InstanceNormalization")
def instance_norm(net: LoweringContext, node: ir.Node) -> None:
    """Over all axes but the first two; scale and shift for each channel."""
    rank = len(shape_of(node.inputs[0]))
    scale, shift = (
        require_constant(node, index).reshape(-1, *[1] * (rank - 2)) for index in (1, 2)
    )
    _normalise(net, node, tuple(range(2, rank)), scale, shift)


def _normalise(
    net: LoweringContext,
    node: ir.Node,
    axes: tuple[int, ...],
    scale: FloatArray,
    shift: FloatArray,
) -> None:
    x = net.in_16_bits(node.inputs[0])
    result = _normalised(
        net,
        x,
        sorted(x.layout.index(axis) for axis in axes),
        node.attributes["epsilon"].as_float(),
    )
    if not np.all(scale == 1) or np.any(shift) or net.options.scales == "shift":
        result = _affine(net, node, result, scale, shift)
    net.define(node.outputs[0], result)


def _normalised(
    net: LoweringContext, x: Tensor, axes: list[int], epsilon: float
) -> Tensor:
    """(x - mean) / sqrt(variance + epsilon) over physical axes."""
    a = Arithmetic(net.builder, len(x.layout))
    count = math.prod(net.shape(x)[axis] for axis in axes)
    square_bits = (
        count - 1
    ).bit_length()  # of what is shifted out of a square, so that `count` of them fit 2^30
    deviation = _deviations(net, a, x, axes, count)
    greatest = net.builder.emit("abs", deviation)
    for axis in axes:
        greatest = net.builder.emit("reduce_max", greatest, axis=axis)
    # what epsilon adds to the sum of squared deviations, in units of x's integers
    added = epsilon * count / float(x.scale[0] * x.scale[0])
    at_shift = np.ldexp(
        added,
        [2 * MEAN_BITS - square_bits - 2 * bits for bits in range(MOST_SHIFT + 1)],
    )
    least_shift = int(np.count_nonzero(at_shift > EPSILON_LIMIT))
    excess = a.clamp(
        excess_bits(a, greatest, MANTISSA_BITS),
        min(least_shift, MOST_SHIFT),
        MOST_SHIFT,
    )
    mantissa = a.clamp(
        a.right(deviation, excess, computed=True), -(2**MANTISSA_BITS), 2**MANTISSA_BITS
    )
    squares = a.mul(mantissa, mantissa, square_bits)
    for axis in axes:
        squares = net.builder.emit("reduce_sum", squares, axis=axis)
    total = a.add(a.clamp(squares, 0, 2**30), _by_shift(net, a, excess, at_shift))
    total = a.clamp(total, max(1, 2 ** (2 * LEAST_MANTISSA) >> square_bits), 2**31 - 1)
    steep = inverse(a, fine_root(a, total))
    shift = NUMERATOR_BITS - RESULT_BITS
    value = a.mul(mantissa, steep, shift)
    unit = math.ldexp(float(np.sqrt(math.ldexp(count, -square_bits))), -RESULT_BITS)
    return Tensor(value, np.array([unit]), 0, x.layout)


def _deviations(
    net: LoweringContext, a: Arithmetic, x: Tensor, axes: list[int], count: int
) -> Handle:
    """2^14 times the difference of each integer to the mean of its row."""
    wide = net.widen(x)
    total, shift = sum_over(net, wide.value, axes)
    ratio = math.ldexp(1.0 / count, MEAN_BITS + shift)
    mean = net.rescale(Tensor(total, x.scale, 0, x.layout), np.array([ratio]), "i32", 0)
    mean = a.clamp(mean, -(2 ** (MEAN_BITS + 15)), 2 ** (MEAN_BITS + 15))
    return a.sub(a.left(wide.value, MEAN_BITS), mean)


def _by_shift(
    net: LoweringContext, a: Arithmetic, excess: Handle, values: FloatArray
) -> Handle:
    """The number that stands in `values` at a computed index."""
    entries = np.zeros(256, np.int32)
    entries[128 : 128 + len(values)] = np.floor(
        np.minimum(values, EPSILON_LIMIT) + 0.5
    ).astype(np.int32)
    index = net.builder.emit("cast", excess, dtype="i8")
    return net.builder.emit("table", index, net.constant(entries))


def _affine(
    net: LoweringContext, node: ir.Node, x: Tensor, scale: FloatArray, shift: FloatArray
) -> Tensor:
    """x * scale + shift in i32, at a scale much finer than the result's."""
    low, high = net.interval(x)
    reach = max(-low, high) * float(np.abs(scale).max()) + float(np.abs(shift).max())
    fine = fine_scale(net, name_of(node.outputs[0]), reach)
    factor = scale * float(x.scale[0]) / fine
    bits = min(max(29 - math.frexp(float(np.abs(factor).max()))[1], 0), 62)
    integers: IntArray = quantize_array(
        np.ldexp(factor, bits), 1.0, -(2**30), 2**30
    ).astype(np.int32)
    a = Arithmetic(net.builder, len(x.layout))
    value = a.mul(x.value, net.constant(arranged(integers, x.layout)), bits)
    if np.any(shift):
        offsets = quantize_array(shift, fine, -HALF_RANGE, HALF_RANGE - 1).astype(
            np.int32
        )
        value = a.add(
            a.clamp(value, -HALF_RANGE, HALF_RANGE),
            net.constant(arranged(offsets, x.layout)),
        )
    return Tensor(value, np.array([fine]), 0, x.layout)
