"""Writes a sum of octave codes, along axes or of two values, as a code: each sum has its own exponent.

With e the greatest exponent among the codes of a sum, their numbers are m * 2^o:

    s = sum of (m * 2^guard_bits / 2^(e - o), half up)
    code of s * 2^(e - guard_bits)

Codes reach from the greatest sum that is expected down to 2^-62 of it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from mrt.quantize.builder import Handle
from mrt.quantize.context import LoweringContext
from mrt.quantize.octaves import MOST_BITS, OctaveCode, finest_for
from mrt.quantize.roots import Arithmetic
from mrt.quantize.tensor import Tensor

MOST_GUARD_BITS = 4
"""The most bits by which the terms of a sum are finer than the numbers of their codes."""

WORD_BITS = 30

RATIO_BITS = 13
"""Bits behind the point of the ratio of two scales, which is at least 1."""


def sum_of_codes(
    net: LoweringContext, code: Tensor, axes: Sequence[int], greatest: float
) -> Tensor:
    """Return the sum along physical axes, up to the greatest real that is expected."""
    a = Arithmetic(net.builder, len(code.layout))
    octaves = _octaves(code)
    term = octaves.parts(a, code.value)
    exponent = term[1]
    for axis in axes:
        exponent = a.builder.emit("reduce_max", exponent, axis=axis)
    count = math.prod(net.shape(code)[axis] for axis in axes)
    scale = float(code.scale[0])
    aligned = _Aligned(a, octaves.bits, exponent, count, greatest, scale)
    total = aligned.term(*term)
    for axis in axes:
        total = a.builder.emit("reduce_sum", total, axis=axis)
    return aligned.code(total, code)


def sum_of_two_codes(
    net: LoweringContext, left: Tensor, right: Tensor, greatest: float
) -> Tensor:
    """Return the sum of two codes of one layout, up to the greatest real that is expected."""
    a = Arithmetic(net.builder, len(left.layout))
    scale = min(_finest(left), _finest(right))
    terms = [_at_scale(a, code, scale) for code in (left, right)]
    exponent = a.builder.emit("maximum", terms[0][1], terms[1][1])
    aligned = _Aligned(a, MOST_BITS + 1, exponent, 2, greatest, scale)
    total = a.add(*(aligned.term(*term) for term in terms))
    return aligned.code(total, left)


def codes_at_one_scale(
    net: LoweringContext, codes: Sequence[Tensor], greatest: float
) -> list[Tensor]:
    """Return codes that stand for the same numbers wherever they are equal, up to the greatest real that is expected."""
    a = Arithmetic(net.builder, len(codes[0].layout))
    scale = min(map(_finest, codes))
    terms = [_at_scale(a, code, scale) for code in codes]
    bounds = a.builder.bounds
    longest = max(
        bounds[bits].max.bit_length() + bounds[exponent].max
        for bits, exponent in terms
    )
    octaves, dropped = finest_for(longest, greatest, scale)
    at_scale = replace(
        codes[0], scale=np.array([math.ldexp(scale, dropped)]), octaves=octaves
    )
    return [
        replace(at_scale, value=octaves.encode_from(a, *term, dropped))
        for term in terms
    ]


def _octaves(code: Tensor) -> OctaveCode:
    assert code.octaves is not None, "the caller asked for codes"
    return code.octaves


def _at_scale(
    a: Arithmetic, code: Tensor, scale: float
) -> tuple[Handle, Handle]:
    """Return the bits, one more at most, and the exponents of a code at the scale, which is no greater than its finest."""
    octaves = _octaves(code)
    mantissa, power = math.frexp(_finest(code) / scale)
    factor = round(math.ldexp(mantissa, RATIO_BITS + 1))
    bits, exponent = octaves.full_parts(a, code.value)
    bits = a.mul(bits, a.number(factor), RATIO_BITS)
    if power > 1:
        is_any = a.clamp(bits, 0, 1)
        exponent = a.mul(a.add_number(exponent, power - 1), is_any)
    return bits, exponent


def _finest(code: Tensor) -> float:
    """Return the scale of the full parts of a code."""
    return math.ldexp(float(code.scale[0]), -_octaves(code).spare)


class _Aligned:
    """Brings numbers m * 2^o to the common exponent of their sum, so that integers can be added, and encodes the total.

    That is the greatest exponent of the terms, and at least the one that the code begins with.
    """

    def __init__(
        self,
        a: Arithmetic,
        bits: int,
        exponent: Handle,
        count: int,
        greatest: float,
        scale: float,
    ) -> None:
        free_bits = WORD_BITS - bits - count.bit_length()
        self.a = a
        self.guard_bits = min(free_bits, MOST_GUARD_BITS)
        assert self.guard_bits >= 0, "longer sums are no sums of codes"
        self.most = 2 ** (bits + self.guard_bits)
        """The greatest term."""
        self.scale = math.ldexp(scale, -self.guard_bits)
        length = (count * self.most).bit_length()
        self.octaves, self.dropped_bits = finest_for(
            length + a.builder.bounds[exponent].max, greatest, self.scale
        )
        if self.dropped_bits:
            exponent = a.builder.emit(
                "maximum", exponent, a.number(self.dropped_bits)
            )
        self.exponent = exponent

    def term(self, number: Handle, exponent: Handle) -> Handle:
        """Return number * 2^guard_bits / 2^(the sum's exponent less its own), half up."""
        a = self.a
        shift = a.clamp(a.sub(self.exponent, exponent), 0, 31)
        shifted = a.right_by(a.left(number, self.guard_bits), shift)
        return a.clamp(shifted, 0, self.most)

    def code(self, total: Handle, like: Tensor) -> Tensor:
        """Return the code of a sum of terms, in the layout of one of the codes."""
        exponent = self.a.add_number(self.exponent, -self.dropped_bits)
        return replace(
            like,
            value=self.octaves.encode(self.a, total, exponent),
            scale=np.array([math.ldexp(self.scale, self.dropped_bits)]),
            octaves=self.octaves,
        )
