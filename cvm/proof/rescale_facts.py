"""What follows from the interval of a rescale's operand: where fewer bits are enough than an engine must be ready for."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cvm.program import Instruction, IntArray, Program, arithmetic
from cvm.program.bounds import Bounds
from cvm.program.short_rescale import (
    SHORT_BITS,
    fits_32_bits,
    long_factors,
    short_factors,
)


@dataclass(frozen=True)
class RescaleFacts:
    """`narrow`: all results fit 32 bits before they saturate.

    `fits32`: of a rescale to i8, products fit 32 bits once a multiplier has lost its
    trailing zeros, with the half and the zero point (as a byte of 0..255) that are added.
    """

    narrow: bool
    fits32: bool

    @staticmethod
    def of(
        program: Program, instruction: Instruction, x: Bounds
    ) -> RescaleFacts:
        """Return the facts of a rescale of `x`."""
        multiplier, shift = long_factors(program, instruction)
        zero_point = instruction.integer("input_zp")
        centred = Bounds(x.lo - zero_point, x.hi - zero_point)
        to_bytes = instruction.attributes["dtype"] == "i8"
        return RescaleFacts(
            _is_narrow(centred, multiplier, shift),
            to_bytes and _fits32(centred, multiplier, shift),
        )


def _is_narrow(x: Bounds, multiplier: IntArray, shift: IntArray) -> bool:
    """A rescale is monotone, so that the ends of the intervals decide."""
    low = arithmetic.rescale(x.lo, multiplier, shift)
    high = arithmetic.rescale(x.hi, multiplier, shift)
    return Bounds(low, high).fits("i32")


def _fits32(x: Bounds, multiplier: IntArray, shift: IntArray) -> bool:
    factor, short_shift = short_factors(multiplier, shift)
    if np.any(factor >= 2**SHORT_BITS):
        return False
    return bool(np.all(fits_32_bits(x.lo, x.hi, factor, short_shift)))
