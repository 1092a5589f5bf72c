"""The real weights that fit float's outputs best for the integers that a layer really meets, before they are rounded.

Its inputs have errors by now. A weight that mostly passes errors on does better smaller, and others of the same output can say
what it said: ridge regression of what float's outputs have more than the layer's own, onto its inputs. How far the weights may
move, one half of the samples says about what fits the other; not at all, if nothing found on one holds on the other.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mrt.calibrate.session import Array
from mrt.exact.fixed_point import FloatArray
from mrt.refine.matching import either_within
from mrt.refine.moments import Floats, Moments, Rows, damp

RIDGES = (1.0, 3.0, 10.0, 30.0, 100.0)  # of the mean variance of an input
LONGEST, ROWS = (
    128,
    50,
)  # weights of an output that any samples say enough about; rows for each, if there are more


def can_be_fitted(length: int, rows: int) -> bool:
    """Whether so many rows say enough about so many weights of an output."""
    return length <= LONGEST or rows >= ROWS * length


class Fitting:
    """Moments of rows, and with them those of what float's outputs have more than `weights` [groups,n,K] and `bias` make of them.

    An output counts only if one of the two lies within `low` and `high`: what a clip behind the layer takes away does not matter.
    """

    def __init__(
        self, weights: FloatArray, bias: FloatArray, low: FloatArray, high: FloatArray
    ) -> None:
        groups = len(weights)
        self.moments = Moments()
        self._weights = weights.transpose(0, 2, 1).astype(np.float32)
        self._bias, self._low, self._high = (
            np.broadcast_to(item, groups * weights.shape[1])
            .reshape(groups, 1, -1)
            .astype(np.float32)
            for item in (bias, low, high)
        )
        self._sums: FloatArray = np.zeros((groups, weights.shape[1]))
        self._products: FloatArray = np.zeros(weights.shape)

    def add(self, rows: Rows, wanted: Array) -> None:
        """See rows [groups, outputs, K] and what float's outputs [outputs, O] are, as `bias` has them."""
        self.moments.add(rows)
        floats = wanted.reshape(len(wanted), len(rows), -1).transpose(1, 0, 2)
        own = np.matmul(rows, self._weights) + self._bias
        more = np.where(
            either_within(own, floats, self._low, self._high),
            floats - own,
            np.float32(0),
        )
        self._sums += more.sum(axis=1, dtype=np.float64)
        self._products += np.matmul(more.transpose(0, 2, 1), rows)

    @property
    def covariance(self) -> Floats:
        """[groups, n, K]: of what outputs have more, with each input."""
        count = self.moments.count
        means = self._sums / count
        return np.asarray(
            self._products / count - means[:, :, None] * self.moments.means[:, None, :]
        )


def moved(halves: Sequence[Fitting]) -> FloatArray:
    """[groups, n, K]: what is to be added to the weights."""
    inputs = [half.moments.covariance for half in halves]
    found = [half.covariance for half in halves]
    losses = [
        sum(
            _loss(_solved(inputs[i], found[i], ridge), inputs[1 - i], found[1 - i])
            for i in (0, 1)
        )
        for ridge in RIDGES
    ]
    best = int(np.argmin(losses))
    if losses[best] >= 0:
        return np.zeros(found[0].shape)
    return _solved((inputs[0] + inputs[1]) / 2, (found[0] + found[1]) / 2, RIDGES[best])


def _solved(inputs: Floats, found: FloatArray, ridge: float) -> FloatArray:
    return np.asarray(
        np.linalg.solve(damp(inputs.copy(), ridge), found.transpose(0, 2, 1)).transpose(
            0, 2, 1
        )
    )


def _loss(added: FloatArray, inputs: Floats, found: FloatArray) -> float:
    """How much more squared error there is with these weights added, on the samples with these covariances."""
    return float(((np.matmul(added, inputs) - 2 * found) * added).sum())
