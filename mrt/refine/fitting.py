"""Fits real weights of a layer to float's outputs, for the integers that the layer meets.

The inputs of a layer have rounding errors. A weight that mostly passes errors on does
less harm if it is smaller, and the other weights of the same output can compensate for
it. So the difference between float's outputs and the layer's own is regressed onto the
inputs, with a ridge (Hoerl & Kennard 1970, Technometrics 12(1)). The ridge is
cross-validated: it is the one with which weights fitted to one half of the samples have
the least loss on the other half. If no ridge improves the other half, the weights stay.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mrt.calibrate.session import Array
from mrt.exact.fixed_point import FloatArray
from mrt.refine.matching import either_within
from mrt.refine.moments import Floats, Moments, Rows, damp

RIDGES = (1.0, 3.0, 10.0, 30.0, 100.0)  # of the mean variance of an input
LONGEST = 128  # any number of samples suffices for so many weights of an output
# Rows needed for each weight of an output, where there are more weights.
ROWS = 50


def can_be_fitted(length: int, rows: int) -> bool:
    """Whether so many rows suffice for so many weights of an output."""
    return length <= LONGEST or rows >= ROWS * length


class Fitting:
    """The moments of rows, and their covariance with the errors of the layer's outputs.

    An error is float's output minus the output computed from `weights` [groups,n,K] and
    `bias`. It counts only if one of the two outputs lies within the `interval` [O],
    because a clip behind the layer removes all other differences.
    """

    def __init__(
        self,
        weights: FloatArray,
        bias: FloatArray,
        interval: tuple[FloatArray, FloatArray],
    ) -> None:
        groups, outputs = weights.shape[:2]

        def by_group(numbers: FloatArray) -> Array:
            """Return numbers [O] or [1] as [groups, 1, n]."""
            every = np.broadcast_to(numbers, groups * outputs)
            return every.reshape(groups, 1, -1).astype(np.float32)

        self.moments = Moments()
        self._weights = weights.transpose(0, 2, 1).astype(np.float32)
        self._bias = by_group(bias)
        self._low = by_group(interval[0])
        self._high = by_group(interval[1])
        self._sums: FloatArray = np.zeros((groups, outputs))
        self._products: FloatArray = np.zeros(weights.shape)

    def add(self, rows: Rows, floats: Array) -> None:
        """Add rows and float's outputs [outputs, O] for them."""
        numbers = self.moments.add(rows)
        by_group = floats.reshape(len(floats), len(numbers), -1)
        expected = by_group.transpose(1, 0, 2)
        computed = np.matmul(rows.numbers, self._weights) + self._bias
        counts = either_within(computed, expected, self._low, self._high)
        errors = (expected - computed) * counts  # np.where takes longer
        self._sums += errors.sum(axis=1, dtype=np.float64)
        self._products += np.matmul(errors.transpose(0, 2, 1), numbers)

    @property
    def covariance(self) -> Floats:
        """[groups, n, K]: the covariance of each output's error with each input."""
        count = self.moments.count
        means = self._sums / count
        of_means = means[:, :, None] * self.moments.means[:, None, :]
        return np.asarray(self._products / count - of_means)


def best_correction(halves: Sequence[Fitting]) -> FloatArray:
    """Return the correction to add to the weights, [groups, n, K].

    LinAlgError if no finite one is found.
    """
    inputs = [half.moments.covariance for half in halves]
    errors = [half.covariance for half in halves]
    losses = [_cross_validated_loss(inputs, errors, ridge) for ridge in RIDGES]
    best = int(np.argmin(losses))
    if losses[best] >= 0:
        return np.zeros(errors[0].shape)
    mean_of_inputs = (inputs[0] + inputs[1]) / 2
    mean_of_errors = (errors[0] + errors[1]) / 2
    return _solved(mean_of_inputs, mean_of_errors, RIDGES[best])


def _cross_validated_loss(
    inputs: Sequence[Floats], errors: Sequence[Floats], ridge: float
) -> float:
    """Fit a correction to each half, and return the sum of the losses on the other half."""
    total = 0.0
    for half, other in ((0, 1), (1, 0)):
        correction = _solved(inputs[half], errors[half], ridge)
        total += _loss(correction, inputs[other], errors[other])
    return total


def _solved(inputs: Floats, errors: FloatArray, ridge: float) -> FloatArray:
    damped = damp(inputs.copy(), ridge)
    solution = np.linalg.solve(damped, errors.transpose(0, 2, 1))
    if not np.isfinite(solution).all():
        raise np.linalg.LinAlgError("the solution is not finite")
    return np.asarray(solution.transpose(0, 2, 1))


def _loss(correction: FloatArray, inputs: Floats, errors: FloatArray) -> float:
    """Return the change of the squared error by this correction, from these covariances."""
    gradient = np.matmul(correction, inputs) - 2 * errors
    return float((gradient * correction).sum())
