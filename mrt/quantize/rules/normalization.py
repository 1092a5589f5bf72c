"""Rules of LayerNormalization and InstanceNormalization; each row has a scale of its own.

With q the n integers of a row and sums over them:

    d = 2^14 q - 2^14 sum(q) / n            deviations, exact to half a unit, in i32
    s = the least shift for which max |d| / 2^s has 15 bits, by count of leading zeros;
        so rows of small numbers keep their precision
    m = d / 2^s                             mantissas
    v = sum(m^2 / 2^t) + epsilon            t such that n squares are proven to fit 2^30
    y = m * (2^27 / sqrt(v)) / 2^11         normalised, in steps of sqrt(n / 2^t) / 2^16

Measured against floats: 75 dB and more for any row of 16-bit integers. Scale and shift
are applied to y as one product and one sum in i32, at a scale up to 14 bits finer than
the result's.
"""

from __future__ import annotations

import math

import numpy as np
import onnx_ir as ir

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
from mrt.quantize.rules.elementwise import HALF_RANGE, scale_with_guard_bits
from mrt.quantize.rules.reduction import sum_over
from mrt.quantize.rules.registry import rule
from mrt.quantize.tensor import Tensor, in_layout

MEAN_BITS = 14
"""Bits of a deviation after the point of the integers that are normalised."""

LEAST_MANTISSA_BITS = 13
"""The least number of bits of a row's greatest deviation, unless the row is constant."""

EPSILON_LIMIT = 2**29
MOST_SHIFT = 30
SQUARES_LIMIT = 2**30

RESULT_BITS = 16
"""Bits of a normalised number after the point, up to a factor of sqrt(2)."""

NUMERATOR_BITS = 27
"""A root with 3 bits after the point, inverted to 2^30, is 2^27 over the root."""


@rule("LayerNormalization")
def layer_norm(net: LoweringContext, node: ir.Node) -> None:
    """Normalize over the last axes, from `axis` on; scale and shift are for each element."""
    rank = len(shape_of(node.inputs[0]))
    axes = tuple(range(node.attributes["axis"].as_int(), rank))
    scale, shift = require_constant(node, 1), require_constant(node, 2)
    _normalise(net, node, axes, scale=scale, shift=shift)


@rule("InstanceNormalization")
def instance_norm(net: LoweringContext, node: ir.Node) -> None:
    """Normalize over all axes but the first two; each channel has a scale and a shift."""
    rank = len(shape_of(node.inputs[0]))
    axes = tuple(range(2, rank))
    ones = [1] * (rank - 2)
    scale = require_constant(node, 1).reshape(-1, *ones)
    shift = require_constant(node, 2).reshape(-1, *ones)
    _normalise(net, node, axes, scale=scale, shift=shift)


def _normalise(
    net: LoweringContext,
    node: ir.Node,
    axes: tuple[int, ...],
    *,
    scale: FloatArray,
    shift: FloatArray,
) -> None:
    x = net.in_16_bits(node.inputs[0])
    physical_axes = sorted(x.layout.index(axis) for axis in axes)
    row = _Rows(net, x, physical_axes)
    result = row.normalised(node.attributes["epsilon"].as_float())
    changes_nothing = bool(np.all(scale == 1)) and not np.any(shift)
    if not changes_nothing or net.options.scales == "shift":
        result = _affine(net, node, result, scale=scale, shift=shift)
    net.define(node.outputs[0], result)


class _Rows:
    """The rows of a tensor: the elements along some physical axes."""

    def __init__(
        self, net: LoweringContext, x: Tensor, axes: list[int]
    ) -> None:
        self.net = net
        self.x = x
        self.axes = axes
        self.arithmetic = Arithmetic(net.builder, len(x.layout))
        self.count = math.prod(net.shape(x)[axis] for axis in axes)
        self.square_bits = (self.count - 1).bit_length()
        """The bits t shifted out of a square, so that `count` squares fit 2^30."""

    def normalised(self, epsilon: float) -> Tensor:
        """Return (x - mean) / sqrt(variance + epsilon)."""
        a = self.arithmetic
        deviation = self._deviations()
        greatest = self._reduced("reduce_max", a.builder.emit("abs", deviation))
        epsilons = self._epsilon_at_each_shift(epsilon)
        shift = self._shift(greatest, epsilons)
        limit = 2**MANTISSA_BITS
        mantissa = a.clamp(a.right_by(deviation, shift), -limit, limit)
        squares = a.mul(mantissa, mantissa, self.square_bits)
        sum_of_squares = self._reduced("reduce_sum", squares)
        sum_of_squares = a.clamp(sum_of_squares, 0, SQUARES_LIMIT)
        variance = a.add(sum_of_squares, self._looked_up(shift, epsilons))
        least = 2 ** (2 * LEAST_MANTISSA_BITS) >> self.square_bits
        variance = a.clamp(variance, max(1, least), 2**31 - 1)
        factor = inverse(a, fine_root(a, variance))
        value = a.mul(mantissa, factor, NUMERATOR_BITS - RESULT_BITS)
        root_of_count = float(
            np.sqrt(math.ldexp(self.count, -self.square_bits))
        )
        unit = math.ldexp(root_of_count, -RESULT_BITS)
        return Tensor(value, np.array([unit]), 0, self.x.layout)

    def _deviations(self) -> Handle:
        """Return 2^14 times the difference of each integer to the mean of its row."""
        net, x, a = self.net, self.x, self.arithmetic
        integers = net.widen(x).value
        total, shift = sum_over(net, integers, self.axes)
        ratio = math.ldexp(1.0 / self.count, MEAN_BITS + shift)
        sums = Tensor(total, x.scale, 0, x.layout)
        mean = net.rescale(sums, np.array([ratio]), "i32", 0)
        limit = 2 ** (MEAN_BITS + 15)
        mean = a.clamp(mean, -limit, limit)
        return a.sub(a.left(integers, MEAN_BITS), mean)

    def _reduced(self, instruction: str, value: Handle) -> Handle:
        """Emit a reduction along the axes, one after another."""
        for axis in self.axes:
            value = self.net.builder.emit(instruction, value, axis=axis)
        return value

    def _epsilon_at_each_shift(self, epsilon: float) -> FloatArray:
        """Return n * epsilon in units of the sum of squares, for each shift s = 0 .. 30.

        In units of x's integers it is n * epsilon / scale^2; a square of mantissas
        counts in units of 2^(2 s + t - 28).
        """
        step = self.x.scale[0]
        in_integers = epsilon * self.count / float(step * step)
        shifts = range(MOST_SHIFT + 1)
        exponents = [
            2 * MEAN_BITS - self.square_bits - 2 * shift for shift in shifts
        ]
        return np.ldexp(in_integers, exponents)

    def _shift(self, greatest: Handle, epsilons: FloatArray) -> Handle:
        """Return the shift s of each row, at least the one at which epsilon fits beside squares."""
        a = self.arithmetic
        too_great = int(np.count_nonzero(epsilons > EPSILON_LIMIT))
        least_shift = min(too_great, MOST_SHIFT)
        excess = excess_bits(a, greatest, MANTISSA_BITS)
        return a.clamp(excess, least_shift, MOST_SHIFT)

    def _looked_up(self, shift: Handle, values: FloatArray) -> Handle:
        """Return the entry of `values` at a computed index, by a table of 256 entries for i8."""
        entries = np.zeros(256, np.int32)
        integers = np.floor(np.minimum(values, EPSILON_LIMIT) + 0.5)
        entries[128 : 128 + len(values)] = integers.astype(np.int32)
        index = self.net.builder.emit("cast", shift, dtype="i8")
        return self.net.builder.emit("table", index, self.net.constant(entries))


def _affine(
    net: LoweringContext,
    node: ir.Node,
    x: Tensor,
    *,
    scale: FloatArray,
    shift: FloatArray,
) -> Tensor:
    """Write x * scale + shift in i32, at a scale much finer than the result's.

    The factor scale * (scale of x) / (scale of the sum) is an integer over 2^bits.
    """
    a = Arithmetic(net.builder, len(x.layout))
    low, high = net.interval(x)
    greatest_scale = float(np.abs(scale).max())
    greatest_shift = float(np.abs(shift).max())
    greatest = max(-low, high) * greatest_scale + greatest_shift
    step = scale_with_guard_bits(net, name_of(node.outputs[0]), greatest)
    factor = scale * float(x.scale[0]) / step
    _, exponent = math.frexp(float(np.abs(factor).max()))
    bits = min(max(29 - exponent, 0), 62)
    factors = quantize_array(
        np.ldexp(factor, bits), 1.0, -HALF_RANGE, HALF_RANGE
    )
    factors = in_layout(factors.astype(np.int32), x.layout)
    value = a.mul(x.value, net.constant(factors), bits)
    if np.any(shift):
        offsets = quantize_array(shift, step, -HALF_RANGE, HALF_RANGE - 1)
        offsets = in_layout(offsets.astype(np.int32), x.layout)
        value = a.clamp(value, -HALF_RANGE, HALF_RANGE)
        value = a.add(value, net.constant(offsets))
    return Tensor(value, np.array([step]), 0, x.layout)
