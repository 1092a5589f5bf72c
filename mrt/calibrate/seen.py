"""One value for one sample, and what several onlookers ask of it, computed once."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from mrt.calibrate import counting

Array = npt.NDArray[Any]
Floats = npt.NDArray[np.float64]


class Seen:
    """`values` [N, C, ...], or fewer dimensions; `few` of them, thinned.

    The arrays are written over after a sample: what is to be kept of them is copied.
    """

    def __init__(self, values: Array, few: Array) -> None:
        self.values, self.few = values, few

    @cached_property
    def ends(self) -> tuple[Array, Array]:
        """[C], [C]: the least and the greatest number of each index of axis 1, of all numbers; NaN where one is."""
        return counting.ends(rows_of_channels(self.values))

    @cached_property
    def range(self) -> tuple[float, float]:
        """The least and the greatest number of all; NaN if there is one."""
        low, high = self.ends if self.values.ndim == 4 else counting.ends(self.values.reshape(1, -1))
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


def rows_of_channels(values: Array) -> Array:
    """[C, numbers of each index of axis 1]."""
    return values.swapaxes(0, 1).reshape(values.shape[1], -1)
