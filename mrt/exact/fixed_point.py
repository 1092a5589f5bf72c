"""Real scales as integers. Only exactly rounded float64 operations and Python integers: the same result on every machine."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from cvm.program import IntArray

FloatArray = npt.NDArray[np.float64]

MULTIPLIER_BITS = 31
MAX_SHIFT = 62
MAX_RATIO = (
    2.0**28
)  # one step of the source already goes beyond what 8 and 16 bits hold
SMALLEST_SCALE = (
    2.0**-200
)  # of the smallest float32 number at 16 bits, with room; products of four still fit float64


def multipliers_and_shifts(ratios: npt.ArrayLike) -> tuple[IntArray, IntArray]:
    """ratio ~ multiplier / 2^shift in rescale's canonical form (SPEC rescale.C8), 0 <= ratio < 2^29; nearest, half to even.

    The i32 and i8 operands of a rescale. Ratios under 2^-32 lose precision, those under 2^-63 become 0: canonical form has
    no larger shift.
    """
    exact = np.asarray(ratios, np.float64)
    for ratio in exact[~((exact >= 0) & (exact < 2.0**29))]:
        raise ValueError(f"ratio {ratio} is outside 0..2^29")
    _, exponents = np.frexp(
        exact
    )  # ratio = fraction * 2^exponent, fraction in [0.5, 1)
    shifts = np.minimum(MULTIPLIER_BITS - exponents, MAX_SHIFT)
    multipliers = np.rint(np.ldexp(exact, shifts))
    carried = multipliers == 2.0**MULTIPLIER_BITS  # the fraction rounded up to 1
    multipliers, shifts = (
        np.where(carried, 2.0 ** (MULTIPLIER_BITS - 1), multipliers),
        shifts - carried,
    )
    return multipliers.astype(np.int32), np.where(
        multipliers >= 2.0**30, shifts, MAX_SHIFT
    ).astype(np.int8)


def usable_scale(ideal: float, scales: str) -> float:
    """The ideal scale, or the next power of two for scales "shift"; 1 for what was always 0, where any scale will do."""
    if ideal < SMALLEST_SCALE:
        ideal = 1.0
    return power_of_two_at_least(ideal) if scales == "shift" else ideal


def power_of_two_at_least(scale: float) -> float:
    """The least power of two that is not below `scale` > 0."""
    fraction, exponent = math.frexp(scale)
    return math.ldexp(1.0, exponent - 1 if fraction == 0.5 else exponent)


def round_half_up(x: FloatArray) -> FloatArray:
    """floor(x + 0.5), the rounding of the boundary (SPEC section 2)."""
    return np.floor(x + 0.5)


def quantize_array(
    x: npt.ArrayLike, scale: npt.ArrayLike, low: int, high: int
) -> IntArray:
    """Nearest integers to x / scale, half up, saturated to [low, high]; int64."""
    steps = np.asarray(x, np.float64) / np.asarray(scale, np.float64)
    return np.clip(round_half_up(steps), low, high).astype(np.int64)
