"""Observers see all values of a tensor as they stream by and end with a range. Two merged equal one that saw all."""

from __future__ import annotations

import math
from typing import Any

import numpy.typing as npt

from mrt.calibrate.histogram import Histogram
from mrt.calibrate.thresholds import PICKERS
from mrt.errors import BadData
from mrt.table.table import CalibrationOptions, MeasuredRange


class Observer:
    """Least and greatest value and, for every observer but minmax, a histogram.

    `summed`: how many of the values are only ever summed together.
    """

    def __init__(self, options: CalibrationOptions, summed: int = 1) -> None:
        self.options = options
        self._summed = summed
        self.min = math.inf
        self.max = -math.inf
        self.histogram = None if options.observer == "minmax" else Histogram()

    def update(self, values: npt.NDArray[Any]) -> None:
        """See one more array; BadData if it holds NaN or infinity."""
        if values.size:
            self.count(values, float(values.min()), float(values.max()))

    def count(self, few: npt.NDArray[Any], least: float, most: float) -> None:
        """As `update`, of an array with these ends; the histogram counts few of its numbers."""
        if not (math.isfinite(least) and math.isfinite(most)):
            raise BadData("NaN or infinity among the values")
        self.min, self.max = min(self.min, least), max(self.max, most)
        if self.histogram is not None:
            self.histogram.add(few, max(abs(least), abs(most)))

    def merge(self, other: Observer) -> None:
        """Become what one observer would be that saw the values of both."""
        if self.options.key() != other.options.key():
            raise ValueError("observers of different options do not merge")
        self.min, self.max = min(self.min, other.min), max(self.max, other.max)
        if self.histogram is not None and other.histogram is not None:
            self.histogram.merge(other.histogram)

    def range(self) -> MeasuredRange:
        """The range after everything seen; of no values at all, that of zeros."""
        if self.min > self.max:
            return MeasuredRange(0.0, 0.0, 0.0, 0.0)
        low, high = (
            self.min + 0.0,
            self.max + 0.0,
        )  # a negative zero would be one more spelling of the same table
        if self.histogram is None:
            return MeasuredRange(low, high, low, high)
        lo, hi = PICKERS[self.options.observer](
            self.histogram, low, high, self.options, self._summed
        )
        lo = min(max(lo, low), high)
        return MeasuredRange(low, high, lo, max(lo, min(hi, high)))
