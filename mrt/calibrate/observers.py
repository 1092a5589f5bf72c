"""Observers take the numbers of a value, sample by sample, and return its range.

They can be merged.
"""

from __future__ import annotations

import math
from typing import Any

import numpy.typing as npt

from mrt.calibrate.histogram import Histogram
from mrt.calibrate.thresholds import PICKERS
from mrt.errors import BadData
from mrt.table.table import CalibrationOptions, MeasuredRange

NO_SUCH_NUMBERS = (
    "a program has no such numbers: if every sample gives them, mend the model "
    "where it makes them, or leave the sample out"
)
"""What to do about NaN and infinity."""


class Observer:
    """The least and the greatest number and, for every observer but minmax, a histogram.

    `summed` is the count of numbers that all readers only add up.
    """

    def __init__(self, options: CalibrationOptions, summed: int = 1) -> None:
        self.options = options
        self._summed = summed
        self.min = math.inf
        self.max = -math.inf
        self.histogram = None if options.observer == "minmax" else Histogram()

    def update(self, values: npt.NDArray[Any]) -> None:
        """Take one more array; raise BadData if it holds NaN or infinity."""
        if values.size:
            self.count(values, float(values.min()), float(values.max()))

    def count(
        self, subsample: npt.NDArray[Any], least: float, most: float
    ) -> None:
        """Take one more array, from `least` to `most`; the histogram counts a subsample of it."""
        if not (math.isfinite(least) and math.isfinite(most)):
            raise BadData("NaN or infinity among the values")
        self.min, self.max = min(self.min, least), max(self.max, most)
        if self.histogram is not None:
            self.histogram.add(subsample, max(abs(least), abs(most)))

    def merge(self, other: Observer) -> None:
        """Take all numbers that another observer of the same options took."""
        if self.options.key() != other.options.key():
            raise ValueError("observers of different options do not merge")
        self.min, self.max = min(self.min, other.min), max(self.max, other.max)
        if self.histogram is not None and other.histogram is not None:
            self.histogram.merge(other.histogram)

    def range(self) -> MeasuredRange:
        """Return the range of all numbers so far; without any, that of zeros."""
        if self.min > self.max:
            return MeasuredRange(0.0, 0.0, 0.0, 0.0)
        # A negative zero would be a second way to write the same table.
        low, high = self.min + 0.0, self.max + 0.0
        if self.histogram is None:
            return MeasuredRange(low, high, low, high)
        pick = PICKERS[self.options.observer]
        lo, hi = pick(self.histogram, low, high, self.options, self._summed)
        lo = min(max(lo, low), high)
        return MeasuredRange(low, high, lo, max(lo, min(hi, high)))
