"""Finds the gain and bias of each output channel that bring it nearest to float's.

An output counts only if float's or the integers' lies within the interval that a clip
behind the layer lets pass. A channel that is almost always clipped has few outputs that
count, and correcting it for these could move all the others into the interval. Such a
channel is not corrected if the clip's outputs would then be much further from float's.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
import onnx_ir as ir

from mrt.calibrate.session import Array
from mrt.exact.fixed_point import FloatArray
from mrt.graph.canonical_values import clip_ends
from mrt.quantize.tensor import Interval

MOST_GAIN = 1.25
MOST_HARM = 1.5
"""The factor by which the squared error behind a clip may grow.

It is above 1 because a correct mean outweighs some error.
"""


class Matching:
    """Pairs of outputs [samples, places, O], computed and float, and their best match."""

    def __init__(self, interval: Interval) -> None:
        self._low, self._high = interval
        self._clips = self._low > -math.inf or self._high < math.inf
        # Sums over the positions of each sample's outputs, [samples, O].
        self._counts: list[FloatArray] = []
        self._computed_sums: list[FloatArray] = []
        self._float_sums: list[FloatArray] = []
        self._squares: FloatArray | float = 0.0  # [O]
        self._products: FloatArray | float = 0.0  # [O]
        # Computed outputs, and clipped float ones.
        self._pairs: list[tuple[Array, Array]] = []

    def add(self, computed: Array, floats: Array) -> None:
        """Add the outputs of some samples."""
        computed = computed.astype(np.float32, copy=False)
        floats = floats.astype(np.float32, copy=False)
        counts = np.ones(computed.shape, np.float32)
        if self._clips:
            self._pairs.append((computed, self._clipped(floats)))
            within = either_within(computed, floats, self._low, self._high)
            counts = within.astype(np.float32)
            computed = computed * counts
            floats = floats * counts
        self._counts.append(_sums_of_places(counts))
        self._computed_sums.append(_sums_of_places(computed))
        self._float_sums.append(_sums_of_places(floats))
        squares = np.einsum("npo,npo->o", computed, computed)
        self._squares = self._squares + squares
        self._products = self._products + np.einsum(
            "npo,npo->o", computed, floats
        )

    def result(self, *, gains: bool) -> tuple[FloatArray, FloatArray]:
        """Return the gains, [O], which are 1 unless `gains`, and the numbers to add then, [O]."""
        counts = np.concatenate(self._counts)
        computed = np.concatenate(self._computed_sums)
        floats = np.concatenate(self._float_sums)
        gain = np.ones(counts.shape[1])
        if gains:
            gain = self._gains(counts, computed, floats)
        added = _shrunken_mean(floats - gain * computed, counts)
        return self._without_harm(gain, added) if self._clips else (gain, added)

    def _without_harm(
        self, gain: FloatArray, added: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Replace gain and addition by 1 and 0 for channels whose error behind the clip grows.

        The growth that is allowed is MOST_HARM.
        """
        before, after = np.zeros((2, *gain.shape))
        for computed, floats in self._pairs:
            moved = computed * gain.astype(np.float32)
            moved += added.astype(np.float32)
            before += self._squared_error(computed, floats)
            after += self._squared_error(moved, floats)
        harmless = after <= MOST_HARM * before
        return np.where(harmless, gain, 1.0), np.where(harmless, added, 0.0)

    def _squared_error(
        self, outputs: Array, clipped_floats: Array
    ) -> FloatArray:
        errors = self._clipped(outputs)
        errors -= clipped_floats
        return np.asarray(np.einsum("npo,npo->o", errors, errors))

    def _clipped(self, outputs: Array) -> Array:
        # With one number for all, this is several times as fast as np.maximum and np.minimum.
        low, high = np.float32(self._low), np.float32(self._high)
        return np.asarray(np.clip(outputs, low, high))

    def _gains(
        self, counts: FloatArray, computed: FloatArray, floats: FloatArray
    ) -> FloatArray:
        """Return the slope of float outputs over computed ones, drawn toward 1.

        The prior for 1 weighs as much as the mean channel's variance. All are 1 where
        some outputs are so large that float32 cannot hold the sums of their squares.
        """
        sums = np.array([self._squares, self._products])
        if not np.isfinite(sums).all():
            return np.ones(counts.shape[1])
        number = np.maximum(counts.sum(axis=0), 1.0)
        total = computed.sum(axis=0)
        variance = np.maximum(self._squares - total**2 / number, 0.0)
        covariance = self._products - total * floats.sum(axis=0) / number
        prior = max(float(variance.mean()), 1e-300)
        slope = (covariance + prior) / (variance + prior)
        return np.asarray(np.clip(slope, 1 / MOST_GAIN, MOST_GAIN))


def _sums_of_places(numbers: Array) -> FloatArray:
    """Return sums [samples, O] over at most some hundred positions; float32 is accurate enough."""
    ones = np.ones((1, numbers.shape[1]), np.float32)
    sums = np.matmul(ones, numbers)[:, 0]
    return np.asarray(sums, np.float64)


def either_within(
    one: Array, other: Array, low: Array | float, high: Array | float
) -> npt.NDArray[np.bool_]:
    """Whether at least one of each pair lies within, or the two lie on different sides."""
    counts: npt.NDArray[np.bool_] = np.ones(one.shape, np.bool_)
    if np.any(low > -np.inf):
        counts &= (one > low) | (other > low)
    if np.any(high < np.inf):
        counts &= (one < high) | (other < high)
    return counts


def _shrunken_mean(errors: FloatArray, counts: FloatArray) -> FloatArray:
    """Return the mean error, [O], shrunk toward 0 by how noisy it is.

    `errors` are sums [samples, O] over `counts` places. The shrinkage is that of James
    and Stein (1961, Proc. Fourth Berkeley Symposium, vol. 1), per channel.
    """
    number = np.maximum(counts.sum(axis=0), 1.0)
    samples = len(errors)
    mean = errors.sum(axis=0) / number
    deviations = errors - counts * mean
    spread = (deviations**2).sum(axis=0) / number**2
    uncertainty = mean**2
    if samples > 1:
        uncertainty = spread * samples / (samples - 1)
    noise_share = uncertainty / np.maximum(mean**2, 1e-300)
    return np.asarray(mean * np.maximum(0.0, 1.0 - noise_share))


def interval_behind(value: ir.Value) -> Interval:
    """Return the interval that a Relu or Clip lets pass, if it is the value's only reader."""
    readers = [use.node for use in value.uses()]
    if len(readers) == 1 and readers[0].op_type == "Relu":
        return 0.0, math.inf
    if len(readers) == 1 and readers[0].op_type == "Clip":
        return clip_ends(readers[0])
    return -math.inf, math.inf
