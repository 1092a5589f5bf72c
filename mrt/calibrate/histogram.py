"""A histogram that grows with its numbers and merges exactly.

Its bins have a power-of-two width that can only double. Bin i > 0 holds the numbers of
[i * width, (i+1) * width), bin -i their negatives, and bin 0 the numbers between.
Doubling the width moves bin i to i / 2, truncated, which is the bin that its numbers
have at that width. The final width depends on the largest magnitude alone, so neither
the order of the numbers nor their division among histograms makes a difference.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from mrt.calibrate.counting import count_bins

# Bins run from -(HALF - 1) to HALF - 1; the largest magnitude lies in the outer half.
HALF = 4096
CENTRE = HALF - 1  # the position of bin 0 in the counts
MOST_WAITING = 1024  # numbers that are kept before any is counted
Counts = npt.NDArray[np.int64]
# The exponent of the first width, which is below any float32 that could matter.
_FINEST = -140


class Histogram:
    """Counts of values by bin: `counts[CENTRE + i]` is of bin i.

    The width of a bin is 2 ** exponent. The first few numbers wait uncounted: a model of
    thousands of small values has as many histograms, whose bins take more memory than
    these.
    """

    def __init__(self) -> None:
        self.exponent = _FINEST
        self._counts: Counts | None = None
        self._waiting: list[npt.NDArray[Any]] = []
        self._waiting_numbers = 0

    @property
    def counts(self) -> Counts:
        """The count of each bin."""
        if self._counts is not None:
            return self._counts
        counts = np.zeros(2 * CENTRE + 1, np.int64)
        for values in self._waiting:
            count_bins(counts, values, self.exponent)
        return counts

    @property
    def width(self) -> float:
        """The width of every bin; bin 0 has it on either side of zero."""
        return math.ldexp(1.0, self.exponent)

    def add(self, values: npt.NDArray[Any], magnitude: float) -> None:
        """Count finite numbers of at most this magnitude."""
        self._widen(exponent_for(magnitude))
        waiting = self._waiting_numbers + values.size
        if self._counts is None and waiting <= MOST_WAITING:
            self._waiting.append(values.copy())
            self._waiting_numbers = waiting
        else:
            count_bins(self._counted(), values, self.exponent)

    def merge(self, other: Histogram) -> None:
        """Add the counts of `other`, exactly as if its numbers had been added here."""
        self._widen(other.exponent)
        counts = self._counted()
        counts += _doubled(other.counts, self.exponent - other.exponent)

    def _counted(self) -> Counts:
        """Return the counts, with which all numbers are counted from now on."""
        self._counts = self.counts
        self._waiting.clear()
        return self._counts

    def _widen(self, exponent: int) -> None:
        if exponent <= self.exponent:
            return
        if self._counts is not None:
            self._counts = _doubled(self._counts, exponent - self.exponent)
        self.exponent = exponent


def exponent_for(magnitude: float) -> int:
    """Return the least exponent, from the finest up, with which `magnitude` fits into the bins."""
    if magnitude == 0:
        return _FINEST
    _, power = math.frexp(magnitude)  # magnitude < 2 ** power
    return max(_FINEST, power - (HALF.bit_length() - 1))


def _doubled(counts: Counts, times: int) -> Counts:
    """Return the counts after doubling the width so many times."""
    if times == 0:
        return counts.copy()
    bins = np.arange(-CENTRE, CENTRE + 1)
    merged = np.sign(bins) * (np.abs(bins) >> min(times, HALF.bit_length()))
    result = np.zeros_like(counts)
    np.add.at(result, merged + CENTRE, counts)
    return result
