"""One value of one sample, with the statistics that several callbacks need.

Each statistic is computed once.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from mrt.calibrate import counting

Array = npt.NDArray[Any]
Floats = npt.NDArray[np.float64]


class ObservedTensor:
    """The numbers of a value [N, C, ...] (or of fewer dimensions), and a subsample of them.

    The arrays are overwritten by the next sample: a callback must copy the numbers that
    it keeps.
    """

    def __init__(self, values: Array, subsample: Array) -> None:
        self._values, self.subsample = values, subsample

    @property
    def values(self) -> Array:
        """All numbers."""
        return self._values

    @cached_property
    def extremes(self) -> tuple[Array, Array]:
        """The least and the greatest number of each index of axis 1, [C] and [C].

        Both are NaN where one number is NaN.
        """
        return counting.extremes(rows_of_channels(self.values))

    @cached_property
    def range(self) -> tuple[float, float]:
        """The least and the greatest of all numbers; NaN if one of them is NaN."""
        if self.values.ndim == 4:
            low, high = self.extremes
        else:
            low, high = counting.extremes(self.values.reshape(1, -1))
        return float(low.min()), float(high.max())

    @property
    def sums(self) -> Floats:
        """The sum of the subsample's numbers of each index of axis 1, [C]."""
        return self._moments[0]

    @property
    def squares(self) -> Floats:
        """The sum of their squares, [C]."""
        return self._moments[1]

    @cached_property
    def _moments(self) -> tuple[Floats, Floats]:
        return counting.moments(rows_of_channels(self.subsample))


class ClippedTensor(ObservedTensor):
    """The output of a Relu or Clip to [low, high].

    Its statistics are computed from those of its input.
    """

    def __init__(
        self, unclipped: ObservedTensor, low: float, high: float
    ) -> None:
        self._unclipped = unclipped
        self._low, self._high = np.float32(low), np.float32(high)
        self.subsample = self._clip(unclipped.subsample)

    @property
    def values(self) -> Array:
        """All numbers."""
        return self._clip(self._unclipped.values)

    @cached_property
    def extremes(self) -> tuple[Array, Array]:
        """As in the base class; adding 0 makes negative zeros positive."""
        low, high = self._unclipped.extremes
        zero = np.float32(0)
        return self._clip(low) + zero, self._clip(high) + zero

    @cached_property
    def range(self) -> tuple[float, float]:
        """As in the base class."""
        least, most = float(self._low), float(self._high)
        low, high = (
            min(max(end, least), most) for end in self._unclipped.range
        )
        return low + 0.0, high + 0.0

    def _clip(self, numbers: Array) -> Array:
        # Several times as fast as np.maximum and np.minimum with one number for all.
        return np.asarray(np.clip(numbers, self._low, self._high))


def rows_of_channels(values: Array) -> Array:
    """Return the numbers of each index of axis 1 as a row, [C, n]."""
    return values.swapaxes(0, 1).reshape(values.shape[1], -1)
