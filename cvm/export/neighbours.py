"""The two places of an axis between which `resize` samples each place of its result."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cvm.program import IntArray, TensorType, WithAttributes


@dataclass(frozen=True, eq=False)
class Neighbours:
    """For each place of the result: the two places of x beside it, and its distance from the first, in `n`-ths."""

    before: IntArray
    after: IntArray
    behind: IntArray
    n: int

    @property
    def nearest(self) -> IntArray:
        """The nearer of the two; the second of two equally near."""
        return np.where(2 * self.behind >= self.n, self.after, self.before)

    def weighted(self, axis: int) -> tuple[tuple[IntArray, IntArray], ...]:
        """Both places with their weights, in `n`-ths, shaped to multiply an image's axis."""
        weight = self.behind.reshape(-1, *[1] * (2 - axis)).astype(np.int32)
        return (self.before, self.n - weight), (self.after, weight)


def neighbours(
    resize: WithAttributes, x: TensorType, result: TensorType, axis: int
) -> Neighbours:
    """The neighbours along one axis of an image: place i stands at (i d + offset) / n."""
    size, count = x.shape[1 + axis], result.shape[1 + axis]
    n, d = resize.integers("scale")[2 * axis : 2 * axis + 2]
    positions = np.arange(count) * d + resize.integers("offset")[axis]
    place, behind = np.divmod(positions, n)
    before, after = np.maximum(place, 0), np.minimum(place + 1, size - 1)
    return Neighbours(before, after, behind, n)
