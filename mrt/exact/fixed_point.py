"""Converts real scales to integer multipliers and shifts, and reals to integers.

Only exactly rounded float64 operations and Python integers are used, so that the result
is the same on every machine.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from cvm.program import IntArray

FloatArray = npt.NDArray[np.float64]

MULTIPLIER_BITS = 31
MAX_SHIFT = 62

MAX_RATIO = 2.0**28
"""At this ratio one step of the source already exceeds 8 and 16 bits."""

SMALLEST_SCALE = 2.0**-200
"""Far below the smallest float32 number at 16 bits; products of four still fit float64."""


def multipliers_and_shifts(ratios: npt.ArrayLike) -> tuple[IntArray, IntArray]:
    """Return the i32 multipliers and i8 shifts of a rescale: ratio ~ multiplier / 2^shift.

    The ratios satisfy 0 <= ratio < 2^29, and the result is in rescale's canonical form
    (SPEC rescale.C8): nearest, half to even. Ratios under 2^-32 lose precision and
    those under 2^-63 become 0, because canonical form has no greater shift.
    """
    exact = np.asarray(ratios, np.float64)
    in_range = (exact >= 0) & (exact < 2.0**29)
    for ratio in exact[~in_range]:
        raise ValueError(f"ratio {ratio} is outside 0..2^29")
    # ratio = fraction * 2^exponent with 1/2 <= fraction < 1
    _, exponents = np.frexp(exact)
    shifts = np.minimum(MULTIPLIER_BITS - exponents, MAX_SHIFT)
    multipliers = np.rint(np.ldexp(exact, shifts))
    rounded_up_to_one = multipliers == 2.0**MULTIPLIER_BITS
    half = 2.0 ** (MULTIPLIER_BITS - 1)
    multipliers = np.where(rounded_up_to_one, half, multipliers)
    shifts = shifts - rounded_up_to_one
    shifts = np.where(multipliers >= 2.0**30, shifts, MAX_SHIFT)
    return multipliers.astype(np.int32), shifts.astype(np.int8)


def usable_scale(ideal: float, scales: str) -> float:
    """Return the ideal scale, or the next power of two if scales are "shift".

    It is 1 for an ideal scale of almost 0: the value was always 0, and any scale will
    do.
    """
    if ideal < SMALLEST_SCALE:
        ideal = 1.0
    return power_of_two_at_least(ideal) if scales == "shift" else ideal


def power_of_two_at_least(scale: float) -> float:
    """Return the least power of two that is not below `scale` > 0."""
    fraction, exponent = math.frexp(scale)
    if fraction == 0.5:
        exponent -= 1
    return math.ldexp(1.0, exponent)


def round_half_up(x: FloatArray) -> FloatArray:
    """Return floor(x + 0.5), the rounding of the boundary (SPEC section 2)."""
    return np.floor(x + 0.5)


def quantize_array(
    x: npt.ArrayLike, scale: npt.ArrayLike, low: int, high: int
) -> IntArray:
    """Return the integers nearest to x / scale, half up, saturated to [low, high], in int64."""
    steps = np.asarray(x, np.float64) / np.asarray(scale, np.float64)
    return np.clip(round_half_up(steps), low, high).astype(np.int64)
