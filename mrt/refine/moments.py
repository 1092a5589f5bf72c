"""Means and covariances of rows, gathered block by block."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Rows = npt.NDArray[np.float32]
BLOCK = 256  # rows to add at once: of whole numbers up to 255, they and their products add up to 2**24 and are exact


class Moments:
    """Of rows [groups, n, K]. What they are is asked for after the last was added."""

    def __init__(self) -> None:
        self.count = 0  # rows
        self._sums: Any = 0.0  # [groups, K]
        self._products: Any = 0.0  # [groups, K, K]

    def add(self, rows: Rows) -> None:
        """See some rows: best about as many as a block has."""
        self.count += rows.shape[1]
        self._sums = self._sums + np.matmul(
            np.ones((1, rows.shape[1]), np.float32), rows
        )[:, 0].astype(np.float64)
        products = np.matmul(rows.transpose(0, 2, 1), rows)
        if isinstance(self._products, float):
            self._products = products.astype(np.float64)
        else:
            self._products += products  # in place: of a long layer they are large

    def together(self, other: Moments) -> Moments:
        """Of the rows of both, before either is asked what they are."""
        whole = Moments()
        whole.count = self.count + other.count
        whole._sums, whole._products = (
            self._sums + other._sums,
            self._products + other._products,
        )
        return whole

    @cached_property
    def means(self) -> Floats:
        """[groups, K]."""
        return np.asarray(self._sums / self.count)

    @cached_property
    def covariance(self) -> Floats:
        """[groups, K, K]."""
        self._products /= self.count
        self._products -= self.means[:, :, None] * self.means[:, None, :]
        return np.asarray(self._products)


def damp(matrices: Floats, share: float) -> Floats:
    """Covariances [groups,K,K] with this share of the mean variance added to each, so that they can be inverted; in place."""
    length = matrices.shape[1]
    means, diagonal = np.trace(matrices, axis1=1, axis2=2) / length, np.arange(length)
    matrices[:, diagonal, diagonal] += (share * means + np.where(means > 0, 0.0, 1.0))[
        :, None
    ]
    return matrices
