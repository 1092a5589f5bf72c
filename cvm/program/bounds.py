"""The interval of a value: one [lo, hi] per index of the last axis (`TensorType.channels` of them), in exact int64."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cvm.program import DTYPE_RANGES, IntArray, TensorType


@dataclass(frozen=True, eq=False)
class Bounds:
    """lo and hi are int64 vectors of length `type.channels`, inclusive, lo <= hi."""

    lo: IntArray
    hi: IntArray

    @property
    def min(self) -> int:
        """The least value of the whole tensor."""
        return int(self.lo.min())

    @property
    def max(self) -> int:
        """The greatest value of the whole tensor."""
        return int(self.hi.max())

    def fits(self, dtype: str) -> bool:
        """Whether every value is representable in `dtype`."""
        low, high = DTYPE_RANGES[dtype]
        return low <= self.min and self.max <= high

    def hull(self) -> Bounds:
        """One interval that holds for every index."""
        return Bounds(self.lo.min(keepdims=True), self.hi.max(keepdims=True))

    def spread(self, type_: TensorType) -> Bounds:
        """These bounds for a tensor of `type_`: kept if it has as many channels, else hulled and repeated."""
        channels = type_.channels
        if len(self.lo) == channels:
            return self
        hull = self.hull()
        return Bounds(
            np.repeat(hull.lo, channels), np.repeat(hull.hi, channels)
        )

    def union(self, other: Bounds) -> Bounds:
        """The hull of two bounds of equally many channels."""
        return Bounds(
            np.minimum(self.lo, other.lo), np.maximum(self.hi, other.hi)
        )


def full(type_: TensorType, lo: int, hi: int) -> Bounds:
    """The same interval for every channel."""
    return Bounds(
        np.full(type_.channels, lo, np.int64),
        np.full(type_.channels, hi, np.int64),
    )


def of_constant(array: IntArray, type_: TensorType) -> Bounds:
    """The tightest bounds of known values, per channel."""
    rows = array.reshape(-1, type_.channels)
    return Bounds(
        rows.min(axis=0).astype(np.int64), rows.max(axis=0).astype(np.int64)
    )
