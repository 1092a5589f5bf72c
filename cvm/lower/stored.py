"""Integers stored in units: x = factor * u + offset, of which an engine on secrets keeps u.

The integers of a channel that are all congruent to r modulo g are stored as (x - r) / g, which has fewer bits.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cvm.program import IntArray
from cvm.program.bounds import Bounds


@dataclass(frozen=True, eq=False)
class Stored:
    """What the stored integers of each index of the last axis stand for, and between which they lie.

    All are int64 vectors of equal length. A factor of 0 stands for a constant, whose stored integers are 0.
    """

    low: IntArray
    high: IntArray
    factor: IntArray
    offset: IntArray

    @property
    def arrays(self) -> tuple[IntArray, IntArray, IntArray, IntArray]:
        """All four vectors."""
        return self.low, self.high, self.factor, self.offset

    @property
    def bits(self) -> int:
        """The bits of the stored integers, a sign included where one is negative."""
        return bits_between(int(self.low.min()), int(self.high.max()))

    def within(self, bounds: Bounds) -> Stored:
        """The same, no wider than the proven intervals of the values that they stand for: of as many channels, or one for all."""
        unit = np.maximum(self.factor, 1)
        moving = self.factor > 0
        low = -((self.offset - bounds.lo) // unit)
        high = (bounds.hi - self.offset) // unit
        return Stored(
            np.where(moving, np.maximum(self.low, low), 0),
            np.where(moving, np.minimum(self.high, high), 0),
            self.factor,
            self.offset,
        )


def plain(bounds: Bounds) -> Stored:
    """Integers stored as they are."""
    zeros = np.zeros_like(bounds.lo)
    return Stored(bounds.lo, bounds.hi, zeros + 1, zeros)


def from_zero(bounds: Bounds) -> Stored:
    """Integers stored as their distance from the least."""
    zeros = np.zeros_like(bounds.lo)
    return Stored(zeros, bounds.hi - bounds.lo, zeros + 1, bounds.lo)


def bits_between(low: int, high: int) -> int:
    """Bits of an integer of this interval, a sign included where it can be negative."""
    if low >= 0:
        return max(high.bit_length(), 1)
    return max((-low - 1).bit_length(), high.bit_length()) + 1
