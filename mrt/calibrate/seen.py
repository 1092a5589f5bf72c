"""One value for one sample, and what several onlookers ask of it, computed once."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
Floats = npt.NDArray[np.float64]
_BLOCK = 2**16  # numbers gone through at a time, twice, to stay in the cache


class Seen:
    """`values` [N, C, ...], or fewer dimensions; `few` of them, thinned.

    The arrays are written over after a sample: what is to be kept of them is copied.
    """

    def __init__(self, values: Array, few: Array) -> None:
        self.values, self.few = values, few

    @cached_property
    def ends(self) -> tuple[Array, Array]:
        """[C], [C]: the least and the greatest number of each index of axis 1, of all numbers; NaN where one is."""
        rows = rows_of(self.values)
        low, high = np.empty((2, len(rows)), rows.dtype)
        step = max(1, _BLOCK // rows.shape[1])
        for start in range(0, len(rows), step):
            some = slice(start, start + step)
            rows[some].min(axis=1, out=low[some])
            rows[some].max(axis=1, out=high[some])
        return low, high

    @cached_property
    def range(self) -> tuple[float, float]:
        """The least and the greatest number of all; NaN if there is one."""
        if self.values.ndim == 4:
            low, high = self.ends
            return float(low.min()), float(high.max())
        return float(self.values.min()), float(self.values.max())

    @cached_property
    def sums(self) -> Floats:
        """[C]: the sum of few numbers of each index of axis 1."""
        axes = tuple(axis for axis in range(self.few.ndim) if axis != 1)
        return np.asarray(self.few.sum(axis=axes, dtype=np.float64))


def rows_of(values: Array) -> Array:
    """[C, numbers of each index of axis 1]."""
    return values.swapaxes(0, 1).reshape(values.shape[1], -1)
