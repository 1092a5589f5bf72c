"""Rescales whose products fit 32 bits: their multipliers have few bits, and zeros after them (SPEC rescale.C8).

Nothing of their meaning is special, but half as many instructions compute them as rescales with products of 64 bits.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from cvm.program import Instruction, IntArray, Program

SHORT_BITS = 16
"""Of a short multiplier, at most."""

MAX_SHORT_SHIFT = 23
"""Of a short multiplier: 255 shifted by more leaves 32 bits."""


def short_factors(
    multiplier: IntArray, shift: IntArray
) -> tuple[IntArray, IntArray]:
    """Return multipliers without their trailing zeros, and the shifts that are left for them, in int64.

    A shift is at least 1; that of a multiplier of 0 is 1.
    """
    long = multiplier.astype(np.int64)
    lowest_bit = np.where(long == 0, 1, long & -long)
    _, exponents = np.frexp(lowest_bit.astype(np.float64))
    zeros = np.minimum(exponents - 1, shift - 1)
    short_shift = np.where(long == 0, 1, shift - zeros)
    return long >> zeros, short_shift


def factors_of(
    program: Program, instruction: Instruction
) -> tuple[IntArray, IntArray]:
    """Return the short factors of a rescale."""
    return short_factors(*long_factors(program, instruction))


def long_factors(
    program: Program, instruction: Instruction
) -> tuple[IntArray, IntArray]:
    """Return the multipliers and shifts of a rescale as they are stored, in int64."""
    multiplier, shift = (
        program.constants[value - program.first_constant].astype(np.int64)
        for value in instruction.operands[1:]
    )
    return multiplier, shift


def fits_32_bits(
    lo: IntArray, hi: IntArray, multiplier: IntArray, shift: IntArray
) -> npt.NDArray[np.bool_]:
    """Whether (x multiplier + half + byte 2^shift) fits 32 bits for each x in lo..hi and byte in 0..255, by channel.

    The byte stands for the zero point in stored form. Multipliers and shifts are short ones.
    """
    allowed = np.minimum(shift, MAX_SHORT_SHIFT)
    half = np.left_shift(1, allowed - 1)
    least = lo * multiplier + half
    most = hi * multiplier + half + np.left_shift(255, allowed)
    is_short = (multiplier < 2**SHORT_BITS) & (shift <= MAX_SHORT_SHIFT)
    fits: npt.NDArray[np.bool_] = (
        is_short & (least >= -(2**31)) & (most < 2**31)
    )
    return fits
