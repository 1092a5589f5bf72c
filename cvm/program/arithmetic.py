"""The rounding rules of the machine, each defined once, on int64 arrays; none overflows in its domain."""

from __future__ import annotations

import numpy as np

from cvm.program import DTYPE_RANGES, IntArray


def shift_half_up(x: IntArray, shift: IntArray | int) -> IntArray:
    """floor(x / 2^shift + 1/2) for 0 <= shift <= 63: the dropped half rounds toward plus infinity.

    Adding 1 between two shifts cannot overflow, where adding 2^(shift-1) first could.
    """
    shift = np.asarray(shift, np.int64)
    halved: IntArray = x >> np.maximum(shift - 1, 0)
    halved += 1  # in place: these arrays are the largest of a run
    halved >>= 1
    return halved if shift.all() else np.where(shift == 0, x, halved)


def saturate(x: IntArray, dtype: str) -> IntArray:
    """Stop at the ends of `dtype`."""
    return np.clip(x, *DTYPE_RANGES[dtype])


def divide_toward_zero(x: IntArray, y: IntArray) -> IntArray:
    """Quotient truncated toward zero; y must not be 0."""
    quotient = np.abs(x) // np.abs(y)
    return np.where((x < 0) != (y < 0), -quotient, quotient)


def rescale(x: IntArray, multiplier: IntArray, shift: IntArray) -> IntArray:
    """floor((x * multiplier + 2^(shift-1)) / 2^shift).

    With |x| <= 2^31, 0 <= multiplier < 2^31 and 2 <= shift <= 62, 64 bits suffice.
    """
    return shift_half_up(x * multiplier, shift)
