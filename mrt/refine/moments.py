"""Computes means and covariances of rows, block by block."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Numbers = npt.NDArray[np.float32]

BLOCK = 256
"""The rows to add at once.

For integers up to 255, their sums and the sums of their products stay within 2**24, so
float32 represents them exactly.
"""


GREATEST = 255
"""Beyond, sums of products are no longer exact in float32: all is computed in float64.

Float64 is exact for integers of 16 bits, so that a small variance far from 0 is not lost
to the cancellation of large squares.
"""


@dataclass(frozen=True, eq=False)
class Rows:
    """Integers as float32, [groups, n, K], and the `greatest` of their magnitudes."""

    numbers: Numbers
    greatest: float

    def as_exact(self) -> Numbers | Floats:
        """The numbers as a type in which the sums of the products of a block are exact."""
        if self.greatest <= GREATEST:
            return self.numbers
        return self.numbers.astype(np.float64)


class Moments:
    """The moments of rows, to be read after the last rows were added."""

    def __init__(self) -> None:
        self.count = 0  # rows
        self._sums: Any = 0.0  # [groups, K]
        self._products: Any = 0.0  # [groups, K, K]

    def add(self, rows: Rows) -> Numbers | Floats:
        """Add some rows, at best about as many as a block has, and return them as exact numbers."""
        numbers = rows.as_exact()
        count = numbers.shape[1]
        self.count += count
        ones = np.ones((1, count), numbers.dtype)
        sums = np.matmul(ones, numbers)[:, 0]
        self._sums = self._sums + sums.astype(np.float64)
        self._add_products(np.matmul(numbers.transpose(0, 2, 1), numbers))
        return numbers

    def take(self, other: Moments) -> None:
        """Add the rows of another, before the moments of either are read."""
        self.count += other.count
        self._sums = self._sums + other._sums
        self._add_products(other._products)

    def _add_products(self, products: Numbers | Floats) -> None:
        """Add products in place, except the first ones, since those of a long layer are large."""
        if isinstance(self._products, float):
            self._products = products.astype(np.float64)
        else:
            self._products += products

    @classmethod
    def merged(cls, one: Moments, other: Moments) -> Moments:
        """Return the moments of the rows of both, before the moments of either are read."""
        merged = cls()
        merged.take(one)
        merged.take(other)
        return merged

    @cached_property
    def means(self) -> Floats:
        """[groups, K]: the mean of each element."""
        return np.asarray(self._sums / self.count)

    @cached_property
    def covariance(self) -> Floats:
        """[groups, K, K]: the covariance of the elements."""
        self._products /= self.count
        means = self.means[:, None, :]
        for start in range(0, means.shape[2], BLOCK):
            lines = slice(start, start + BLOCK)
            squares = self.means[:, lines, None] * means
            self._products[:, lines] -= squares
        return np.asarray(self._products)


def damp(matrices: Floats, share: float) -> Floats:
    """Add this share of the mean variance to each variance of [groups,K,K], in place.

    Then the covariances can be inverted.
    """
    length = matrices.shape[1]
    means = np.trace(matrices, axis1=1, axis2=2) / length
    diagonal = np.arange(length)
    added = share * means + np.where(means > 0, 0.0, 1.0)
    matrices[:, diagonal, diagonal] += added[:, None]
    return matrices
