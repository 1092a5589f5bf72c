"""Writes a sum of squares as an octave code, from all bits of what is squared.

With n squares, and the greatest magnitude of the numbers that one sum has:

    e = the least shift for which that magnitude / 2^e fits the bits that n squares leave in i32
    s = sum of (number / 2^e, half up)^2
    code of s * 2^(2 e)

So every sum has its own exponent. Its numbers have 15 bits where there are two of them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from mrt.quantize.builder import Handle
from mrt.quantize.context import LoweringContext
from mrt.quantize.octaves import OctaveCode
from mrt.quantize.roots import Arithmetic, excess_bits
from mrt.quantize.sums_of_squares import SumOfSquares
from mrt.quantize.tensor import (
    WIDE_BITS,
    Format,
    Layout,
    Tensor,
    common_layout,
)
from mrt.quantize.wide_values import as_wide

GREATEST = 2**31 - 1

LONGEST = 63
"""Bits of the greatest sum that i64 holds: what a long sum has beyond them is left out at its end."""


def sum_of_squares(net: LoweringContext, total: SumOfSquares) -> Tensor | None:
    """Write a sum of squares in octave codes; None where the terms are integral, and sums exact."""
    terms = [as_wide(net, value) for value in total.terms]
    if any(term.integral for term in terms):
        return None
    layout = common_layout(terms, len(terms[0].layout))
    scale = _common_scale(net, terms)
    numbers = [_at_scale(net, term, scale, layout) for term in terms]
    axes = sorted(layout.index(axis) for axis in total.axes)
    a = Arithmetic(net.builder, len(layout))
    value, octaves, dropped = _Squares(a, numbers, axes).code()
    power = np.array([math.ldexp(scale * scale, dropped)])
    return Tensor(value, power, 0, layout, octaves=octaves)


def _common_scale(net: LoweringContext, terms: Sequence[Tensor]) -> float:
    """Return the terms' scale, or one at which the greatest number of any has 30 bits."""
    scales = {float(term.scale[0]) for term in terms}
    if len(scales) == 1:
        return scales.pop()
    coarsest = max(scales)
    intervals = [net.interval(term) for term in terms]
    greatest = max(max(-low, high) for low, high in intervals)
    _, exponent = math.frexp(greatest / coarsest)
    return math.ldexp(coarsest, min(exponent - WIDE_BITS, 0))


def _at_scale(
    net: LoweringContext, term: Tensor, scale: float, layout: Layout
) -> Handle:
    """Return a term in i32 at a scale and in a layout, within 30 bits."""
    x = net.widen(net.to_layout(term, layout))
    limit = 2**WIDE_BITS
    target = Format("i32", scale, 0, -limit, limit)
    return net.requantize_to(x, target).value


class _Squares:
    """Numbers in i32 that are squared and summed, element by element and along axes."""

    def __init__(
        self, a: Arithmetic, numbers: Sequence[Handle], axes: Sequence[int]
    ) -> None:
        self.a = a
        self.numbers = numbers
        self.axes = axes
        shape = a.builder.types[numbers[0]].shape
        count = len(numbers) * math.prod(shape[axis] for axis in axes)
        self.limit = math.isqrt(GREATEST // count)
        """The greatest number of which `count` squares fit i32."""

    def code(self) -> tuple[Handle, OctaveCode, int]:
        """Return the code of the sum, what the codes stand for, and how many of the last bits are left out."""
        a = self.a
        greatest = self._greatest()
        most = a.builder.bounds[greatest].max
        shift: Handle | None = None
        if most > self.limit:
            keep = (self.limit + 1).bit_length() - 1
            shift = excess_bits(a, greatest, keep)
        total = self._sum(shift)
        length = a.builder.bounds[total].max.bit_length()
        if shift is None:
            octaves = OctaveCode.finest(length)
            return octaves.encode(a, total), octaves, 0
        length += 2 * a.builder.bounds[shift].max
        dropped = max(length - LONGEST, 0)
        octaves = OctaveCode.finest(length - dropped)
        code = octaves.encode_from(a, total, a.left(shift, 1), dropped)
        return code, octaves, dropped

    def _greatest(self) -> Handle:
        """Return the greatest magnitude among the numbers of each sum."""
        emit = self.a.builder.emit
        magnitudes = [emit("abs", number) for number in self.numbers]
        greatest = magnitudes[0]
        for magnitude in magnitudes[1:]:
            greatest = emit("maximum", greatest, magnitude)
        for axis in self.axes:
            greatest = emit("reduce_max", greatest, axis=axis)
        return greatest

    def _sum(self, shift: Handle | None) -> Handle:
        """Return the sum of squares of the numbers shifted right."""
        a = self.a
        squares = [self._square(number, shift) for number in self.numbers]
        total = squares[0]
        for square in squares[1:]:
            total = a.add(total, square)
        for axis in self.axes:
            total = a.builder.emit("reduce_sum", total, axis=axis)
        return total

    def _square(self, number: Handle, shift: Handle | None) -> Handle:
        a = self.a
        if shift is not None:
            shifted = a.right_by(number, shift)
            number = a.clamp(shifted, -self.limit, self.limit)
        proven = a.builder.bounds[number]
        most = max(-proven.min, proven.max)
        # The proof of a product takes its factors as independent.
        return a.clamp(a.mul(number, number), 0, most * most)
