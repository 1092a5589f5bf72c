"""Means and covariances of rows and of what stands beside them, gathered block by block."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Rows = npt.NDArray[np.float32]
BLOCK = 256  # rows to add at once: of whole numbers up to 255, products of so many add up to 2**24 and are exact


class Moments:
    """Of rows x [groups, n, K] beside rows y [groups, n, O]. What they are is asked for after the last was added."""

    def __init__(self) -> None:
        self._count = 0
        self._x: Any = 0.0  # sums [groups, K]
        self._y: Any = 0.0  # [groups, O]
        self._xx: Any = 0.0  # [groups, K, K]
        self._xy: Any = 0.0  # [groups, K, O]

    def add(self, x: Rows, y: Rows) -> None:
        """See some rows of each: best about as many as a block has."""
        across = x.transpose(0, 2, 1)
        self._count += x.shape[1]
        self._x = self._x + x.sum(axis=1, dtype=np.float64)
        self._y = self._y + y.sum(axis=1, dtype=np.float64)
        self._xx = _plus(self._xx, np.matmul(across, x))
        self._xy = _plus(self._xy, np.matmul(across, y))

    @cached_property
    def covariance(self) -> Floats:
        """[groups, K, K]: of x."""
        means = self._x / self._count
        self._xx /= self._count
        self._xx -= means[:, :, None] * means[:, None, :]
        return np.asarray(self._xx)

    @cached_property
    def cross(self) -> Floats:
        """[groups, K, O]: the covariance of x with y."""
        return np.asarray(
            self._xy / self._count - (self._x / self._count)[:, :, None] * (self._y / self._count)[:, None, :]
        )


def _plus(total: Any, products: Rows) -> Any:
    """Added in place, where there is something to add to."""
    if isinstance(total, float):
        return products.astype(np.float64)
    total += products
    return total
