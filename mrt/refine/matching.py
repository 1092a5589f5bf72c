"""The gain and the bias of each output channel with which what integers compute comes nearest to float.

What a clip behind the layer takes away does not count: an output does only if float's or the integers' lies within. A channel
that lies beyond almost always is moved on the word of few outputs, and so might all the others be, into what the clip lets pass:
it is not moved where what then comes out of the clip is much further from float.
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
MOST_HARM = (
    1.5  # times the squared error behind a clip: a mean that is right is worth some
)


class Matching:
    """Gathers pairs of outputs, each [samples, places, O], of which those within the ends count."""

    def __init__(self, ends: Interval) -> None:
        self._low, self._high = ends
        self._counts: list[FloatArray] = []  # [samples, O], as are the sums
        self._sums: list[FloatArray] = []  # of the integers' outputs
        self._wanted: list[FloatArray] = []  # of float's
        self._squares: FloatArray | float = 0.0  # [O]
        self._products: FloatArray | float = 0.0  # [O]
        self._pairs: list[
            tuple[Array, Array]
        ] = []  # computed, and what comes out of the clip of the float ones

    def add(self, computed: Array, wanted: Array) -> None:
        """See some samples."""
        computed, wanted = (
            computed.astype(np.float32, copy=False),
            wanted.astype(np.float32, copy=False),
        )
        if not self._clips:
            counts = np.ones(computed.shape, np.float32)
        else:
            self._pairs.append((computed, self._clipped(wanted)))
            counts = either_within(computed, wanted, self._low, self._high).astype(
                np.float32
            )
            computed, wanted = computed * counts, wanted * counts
        for sums, numbers in (
            (self._counts, counts),
            (self._sums, computed),
            (self._wanted, wanted),
        ):
            sums.append(_sums_of_places(numbers))
        self._squares = self._squares + np.einsum("npo,npo->o", computed, computed)
        self._products = self._products + np.einsum("npo,npo->o", computed, wanted)

    def result(self, *, gains: bool) -> tuple[FloatArray, FloatArray]:
        """[O], [O]: the gains, or ones, and what is to be added then."""
        counts, sums, wanted = (
            np.concatenate(item) for item in (self._counts, self._sums, self._wanted)
        )
        gain = self._gains(counts, sums, wanted) if gains else np.ones(counts.shape[1])
        added = _certain_part(wanted - gain * sums, counts)
        return self._harmless(gain, added) if self._clips else (gain, added)

    def _harmless(
        self, gain: FloatArray, added: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """These, or 1 and 0 for the channels of which they make a much greater squared error come out of the clip."""
        before, after = np.zeros((2, *gain.shape))
        for computed, wanted in self._pairs:
            moved = computed * gain.astype(np.float32)
            moved += added.astype(np.float32)
            for outputs, total in ((computed, before), (moved, after)):
                missed = self._clipped(outputs)
                missed -= wanted
                total += np.einsum("npo,npo->o", missed, missed)
        harmless = after <= MOST_HARM * before
        return np.where(harmless, gain, 1.0), np.where(harmless, added, 0.0)

    @property
    def _clips(self) -> bool:
        return self._low > -math.inf or self._high < math.inf

    def _clipped(self, outputs: Array) -> Array:
        clipped = np.maximum(outputs, np.float32(self._low))
        return (
            clipped
            if self._high == math.inf
            else np.minimum(clipped, np.float32(self._high), out=clipped)
        )

    def _gains(
        self, counts: FloatArray, sums: FloatArray, wanted: FloatArray
    ) -> FloatArray:
        """The slope of float outputs over computed ones; as much speaks for 1 as the mean channel has to say."""
        number = np.maximum(counts.sum(axis=0), 1.0)
        variance = np.maximum(self._squares - sums.sum(axis=0) ** 2 / number, 0.0)
        covariance = self._products - sums.sum(axis=0) * wanted.sum(axis=0) / number
        prior = max(float(variance.mean()), 1e-300)
        return np.asarray(
            np.clip((covariance + prior) / (variance + prior), 1 / MOST_GAIN, MOST_GAIN)
        )


def _sums_of_places(numbers: Array) -> FloatArray:
    """[samples, O]; of at most some hundred places, which float32 adds up well enough."""
    ones = np.ones((1, numbers.shape[1]), np.float32)
    return np.asarray(np.matmul(ones, numbers)[:, 0], np.float64)


def either_within(
    one: Array, other: Array, low: Array | float, high: Array | float
) -> npt.NDArray[np.bool_]:
    """Of which pairs one at least is not taken away by a clip at these ends on the same side as the other."""
    counts: npt.NDArray[np.bool_] = np.ones(one.shape, np.bool_)
    if np.any(low > -np.inf):
        counts &= np.maximum(one, other) > low
    if np.any(high < np.inf):
        counts &= np.minimum(one, other) < high
    return counts


def _certain_part(errors: FloatArray, counts: FloatArray) -> FloatArray:
    """[O]: the mean error, of sums [samples, O], drawn to 0 as far as it may be the chance of few samples (James-Stein)."""
    number, samples = np.maximum(counts.sum(axis=0), 1.0), len(errors)
    mean = errors.sum(axis=0) / number
    spread = ((errors - counts * mean) ** 2).sum(axis=0) / number**2
    uncertainty = spread * samples / (samples - 1) if samples > 1 else mean**2
    return np.asarray(
        mean * np.maximum(0.0, 1.0 - uncertainty / np.maximum(mean**2, 1e-300))
    )


def ends_behind(value: ir.Value) -> Interval:
    """Where a Relu or Clip that alone reads the value cuts it off."""
    readers = [use.node for use in value.uses()]
    if len(readers) == 1 and readers[0].op_type == "Relu":
        return 0.0, math.inf
    if len(readers) == 1 and readers[0].op_type == "Clip":
        return clip_ends(readers[0])
    return -math.inf, math.inf
