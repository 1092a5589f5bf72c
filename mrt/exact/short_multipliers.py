"""Multipliers of few bits for rescales to 8 and 16 bits.

A multiplier of 31 bits is finer than 8 or 16 bits can show, and its products take 64 bits, of
which vectors, small processors and provers have to do twice the work. Where sums leave room,
products with a multiplier for 8 bits fit 32 bits; others are made of two products of 16 bits.
Only exactly rounded float64 operations are used, so that the result is the same on every machine.
"""

from __future__ import annotations

import numpy as np

from cvm.program import IntArray
from cvm.program.bounds import Bounds
from cvm.program.short_rescale import (
    MAX_SHORT_SHIFT,
    SHORT_BITS,
    fits_32_bits,
)
from mrt.exact.fixed_point import (
    MAX_SHIFT,
    MULTIPLIER_BITS,
    FloatArray,
    multipliers_and_shifts,
)
from mrt.exact.ordered_sum import row_sums

MOST_ERROR = 1.0
"""In steps, of a channel's result at the end of the 8-bit range: most lie far from it, and rounding errs by half a step."""

USUAL_ERROR = 0.2
"""The root mean square of the same over the channels of a layer: 62 dB less than a result at the end of the range."""

STEPS = 255
"""From one end of the 8-bit range to the other."""


HALF_BITS = 15
"""Of a multiplier that a signed integer of 16 bits holds. A result of 16 bits is half a step off at the end of its range."""


def narrow_factors(
    ratios: FloatArray, sums: Bounds, dtype: str
) -> tuple[IntArray, IntArray]:
    """Return multipliers and shifts for `sums` that become i8 or i16, of as few bits as they may have."""
    short = short_multipliers(ratios, sums) if dtype == "i8" else None
    return short or half_multipliers(ratios)


def half_multipliers(ratios: FloatArray) -> tuple[IntArray, IntArray]:
    """Return the multipliers and shifts of `multipliers_and_shifts`, rounded to HALF_BITS bits and zeros after them."""
    multipliers, shifts = multipliers_and_shifts(ratios)
    zeros = MULTIPLIER_BITS - HALF_BITS
    halves = (multipliers.astype(np.int64) + 2 ** (zeros - 1)) >> zeros
    rounded_up = halves == 2**HALF_BITS
    halves = np.where(rounded_up, halves // 2, halves)
    multipliers = (halves << zeros).astype(np.int32)
    return multipliers, (shifts - rounded_up).astype(np.int8)


def short_multipliers(
    ratios: FloatArray, x: Bounds
) -> tuple[IntArray, IntArray] | None:
    """Return the i32 multipliers and i8 shifts of a rescale to 8 bits, or None where one would err too much.

    There is one ratio, or one for each channel of the accumulators `x`. The factors are in
    rescale's canonical form (SPEC rescale.C8), and each of them has as many bits as its
    own channel leaves room for, at most 16.
    """
    if len(ratios) == 1:
        x = x.hull()
    multipliers, shifts = _finest(ratios, x)
    errors = _errors(ratios, multipliers, shifts, x)
    usual = row_sums(errors**2) <= USUAL_ERROR**2 * len(errors)
    if np.all(shifts) and usual and errors.max() <= MOST_ERROR:
        return _canonical(multipliers, shifts)
    return None


def _finest(ratios: FloatArray, x: Bounds) -> tuple[FloatArray, IntArray]:
    """Return for each channel the multiplier of the greatest shift that fits, or a shift of 0 where none does."""
    multipliers = np.zeros(len(ratios))
    shifts = np.zeros(len(ratios), np.int64)
    for shift in range(1, MAX_SHORT_SHIFT + 1):
        nearest = np.rint(np.ldexp(ratios, shift))
        capped = np.minimum(nearest, 2**SHORT_BITS).astype(np.int64)
        tried = np.full(len(ratios), shift, np.int64)
        fits = fits_32_bits(x.lo, x.hi, capped, tried)
        multipliers[fits], shifts[fits] = nearest[fits], shift
    return multipliers, shifts


def _errors(
    ratios: FloatArray, multipliers: FloatArray, shifts: IntArray, x: Bounds
) -> FloatArray:
    """Return how many steps the greatest result that does not saturate is off, by channel."""
    greatest = np.maximum(np.abs(x.lo), np.abs(x.hi)).astype(np.float64)
    least_ratio = np.ldexp(1.0, -MAX_SHIFT)
    in_range = np.minimum(greatest, STEPS / np.maximum(ratios, least_ratio))
    return np.abs(np.ldexp(multipliers, -shifts) - ratios) * in_range


def _canonical(
    multipliers: FloatArray, shifts: IntArray
) -> tuple[IntArray, IntArray]:
    """Return the same factors with multipliers of 31 bits, or of 0 with the greatest shift."""
    _, bits = np.frexp(multipliers)
    zeros = MULTIPLIER_BITS - bits
    long = np.ldexp(multipliers, zeros)
    none = multipliers == 0
    moved = np.where(none, MAX_SHIFT, shifts + zeros)
    return long.astype(np.int32), moved.astype(np.int8)
