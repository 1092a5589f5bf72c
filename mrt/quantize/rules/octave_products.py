"""Writes an octave code times constants, element by element, as a code.

Each constant is k * 2^-j with k of 14 bits; those of less than 2^-30 of the greatest are 0:

    code of (m * k) * 2^(e + J - j),  where J is the greatest j
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from cvm.program import IntArray
from mrt.exact.fixed_point import FloatArray
from mrt.quantize.builder import Handle
from mrt.quantize.context import LoweringContext
from mrt.quantize.octaves import finest_for
from mrt.quantize.roots import Arithmetic
from mrt.quantize.tensor import Tensor, in_layout

FACTOR_BITS = 14
MOST_OCTAVES = 30
"""By which a factor that counts may be smaller than the greatest."""


def code_times(
    net: LoweringContext, code: Tensor, factors: FloatArray, greatest: float
) -> Tensor:
    """Return a code, in the layout of the product, times constants that are never negative.

    `greatest` is the greatest real that is expected.
    """
    octaves = code.octaves
    assert octaves is not None, "the caller asked for codes"
    a = Arithmetic(net.builder, len(code.layout))
    mantissas, exponents, unit = _normalized(factors)
    bits, exponent = octaves.full_parts(a, code.value)
    number = a.mul(bits, _constant(net, mantissas, code))
    exponent = a.mul(
        a.add(exponent, _constant(net, exponents, code)), a.clamp(number, 0, 1)
    )
    bounds = a.builder.bounds
    length = bounds[number].max.bit_length() + bounds[exponent].max
    scale = math.ldexp(float(code.scale[0]) * unit, -octaves.spare)
    product, dropped = finest_for(length, greatest, scale)
    return replace(
        code,
        value=product.encode_from(a, number, exponent, dropped),
        scale=np.array([math.ldexp(scale, dropped)]),
        octaves=product,
    )


def _constant(net: LoweringContext, array: IntArray, code: Tensor) -> Handle:
    return net.constant(in_layout(array.astype(np.int32), code.layout))


def _normalized(factors: FloatArray) -> tuple[IntArray, IntArray, float]:
    """Return m of 14 bits, or 0, and e >= 0, and the unit with m * 2^e * unit near each factor."""
    mantissas, exponents = np.frexp(factors)
    least = int(exponents[factors > 0].max(initial=0)) - MOST_OCTAVES
    counts = (factors > 0) & (exponents >= least)
    least = int(exponents[counts].min(initial=0)) if counts.any() else 0
    integers = np.rint(np.ldexp(mantissas, FACTOR_BITS)) * counts
    octaves = np.where(counts, exponents - least, 0)
    unit = math.ldexp(1.0, least - FACTOR_BITS)
    return integers.astype(np.int64), octaves.astype(np.int64), unit
