"""One value for one sample, and what several onlookers ask of it, computed once."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from mrt.calibrate import counting

Array = npt.NDArray[Any]
Floats = npt.NDArray[np.float64]


class ObservedTensor:
    """`values` [N, C, ...], or fewer dimensions; `few` of them, thinned.

    The arrays are written over after a sample: what is to be kept of them is copied.
    """

    def __init__(self, values: Array, few: Array) -> None:
        self._values, self.few = values, few

    @property
    def values(self) -> Array:
        """All numbers."""
        return self._values

    @cached_property
    def ends(self) -> tuple[Array, Array]:
        """[C], [C]: the least and the greatest number of each index of axis 1, of all numbers; NaN where one is."""
        return counting.ends(rows_of_channels(self.values))

    @cached_property
    def range(self) -> tuple[float, float]:
        """The least and the greatest number of all; NaN if there is one."""
        low, high = (
            self.ends
            if self.values.ndim == 4
            else counting.ends(self.values.reshape(1, -1))
        )
        return float(low.min()), float(high.max())

    @property
    def sums(self) -> Floats:
        """[C]: the sum of few numbers of each index of axis 1."""
        return self._moments[0]

    @property
    def squares(self) -> Floats:
        """[C]: the sum of their squares."""
        return self._moments[1]

    @cached_property
    def _moments(self) -> tuple[Floats, Floats]:
        return counting.moments(rows_of_channels(self.few))


class Clipped(ObservedTensor):
    """What a Relu or Clip with these ends makes of a value: what is asked of it follows from what was asked of that."""

    def __init__(self, before: ObservedTensor, low: float, high: float) -> None:
        self._before = before
        self._low, self._high = np.float32(low), np.float32(high)
        self.few = self._clip(before.few)

    @property
    def values(self) -> Array:
        """All numbers."""
        return self._clip(self._before.values)

    @cached_property
    def ends(self) -> tuple[Array, Array]:
        """As of any other value."""
        low, high = (
            self._clip(end) + np.float32(0) for end in self._before.ends
        )  # no zero is negative
        return low, high

    @cached_property
    def range(self) -> tuple[float, float]:
        """As of any other value."""
        low, high = (
            float(self._clip(np.float32(end))) + 0.0 for end in self._before.range
        )
        return low, high

    def _clip(self, numbers: Array | np.float32) -> Array:
        return np.asarray(np.minimum(np.maximum(numbers, self._low), self._high))


def rows_of_channels(values: Array) -> Array:
    """[C, numbers of each index of axis 1]."""
    return values.swapaxes(0, 1).reshape(values.shape[1], -1)
