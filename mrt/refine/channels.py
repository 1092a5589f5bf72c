"""What each channel of a value does over the samples: its range, mean, variance, and how large its numbers are."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from mrt.calibrate.counting import (
    MagnitudeCounts,
    count_magnitudes,
    magnitude_bins,
    magnitude_edges,
)
from mrt.calibrate.observed_tensor import ObservedTensor, rows_of_channels

Floats = npt.NDArray[np.float64]

BINS_PER_OCTAVE = 16  # of magnitudes, by the leading four bits of their fraction
OCTAVES = 12  # below the largest; what is smaller falls into the lowest bin
BINS = BINS_PER_OCTAVE * OCTAVES
MOST_IN_INT32 = 2**31 - 1  # numbers of a channel whose counts fit
SMALLEST = 1e-30  # the largest magnitude, as long as nothing larger was seen


@dataclass
class Channels:
    """Axis 1 of one value. `counts` [C, 2, BINS]: of magnitudes, first of what is not negative, then of what is.

    The highest bin is that of the largest magnitude seen.
    """

    low: Floats
    high: Floats
    sums: Floats
    squares: Floats
    counts: MagnitudeCounts  # of int32 as long as that suffices: most of the time goes into fetching them
    highest: int  # the bin, among all of float32, that is the last of `counts`
    samples: int = 0
    elements: int = 0  # of each channel, that sums, squares and counts are over

    @classmethod
    def of(cls, channels: int) -> Channels:
        """Nothing seen yet."""
        sums, squares = np.zeros((2, channels))
        low, high = np.full(channels, np.inf), np.full(channels, -np.inf)
        return cls(
            low,
            high,
            sums,
            squares,
            np.zeros((channels, 2, BINS), np.int32),
            _highest_bin(0.0),
        )

    @classmethod
    def together(cls, *parts: Channels) -> Channels:
        """What was seen of disjoint samples."""
        whole = cls.of(len(parts[0].low))
        whole.counts = whole.counts.astype(np.int64)
        for part in parts:
            whole.low, whole.high = (
                np.minimum(whole.low, part.low),
                np.maximum(whole.high, part.high),
            )
            whole.sums, whole.squares = (
                whole.sums + part.sums,
                whole.squares + part.squares,
            )
            whole.samples, whole.elements = (
                whole.samples + part.samples,
                whole.elements + part.elements,
            )
            whole._rise_to(part.highest)
            whole.counts += part._counts_up_to(whole.highest)
        return whole

    @property
    def largest(self) -> Floats:
        """The largest magnitude of each channel."""
        return np.maximum(np.maximum(self.high, -self.low), 0.0)

    @property
    def mean(self) -> Floats:
        """Of each channel."""
        return self.sums / max(self.elements, 1)

    @property
    def variance(self) -> Floats:
        """Of each channel."""
        return np.maximum(self.squares / max(self.elements, 1) - self.mean**2, 0.0)

    def add(self, seen: ObservedTensor) -> None:
        """See one sample [N, C, ...]: all of it for the range; for the rest few of it, thinned."""
        self.add_spread(seen)
        low, high = seen.ends
        np.minimum(self.low, low, out=self.low)
        np.maximum(self.high, high, out=self.high)
        least, most = seen.range
        self._rise_to(_highest_bin(max(most, -least)))
        if self.elements > MOST_IN_INT32:
            self.counts = self.counts.astype(np.int64, copy=False)
        count_magnitudes(self.counts, rows_of_channels(seen.few), self.highest)

    def add_spread(self, seen: ObservedTensor) -> None:
        """As `add`, but only for mean and variance."""
        self.sums += seen.sums
        self.squares += seen.squares
        self.samples += 1
        self.elements += seen.few.size // seen.few.shape[1]

    def _rise_to(self, highest: int) -> None:
        """Make this the last bin, if the last is lower."""
        if highest > self.highest:
            self.counts, self.highest = self._counts_up_to(highest), highest

    def _counts_up_to(self, highest: int) -> MagnitudeCounts:
        """The counts with this as the last bin; what falls below the first is counted there."""
        up = min(highest - self.highest, BINS)
        if up == 0:
            return self.counts
        counts = np.zeros_like(self.counts)
        counts[..., : BINS - up] = self.counts[..., up:]
        counts[..., 0] += self.counts[..., :up].sum(axis=-1)
        return counts

    def about(self, centres: Floats) -> Magnitudes:
        """How large the numbers of each channel are if they are counted from these centres [C]."""
        largest = np.maximum(self.high - centres, centres - self.low)
        if not centres.any():
            return Magnitudes(self.counts.sum(axis=1), _middles(self.highest), largest)
        # Half of each bin counts at either edge: it may be a wide one.
        edges = np.stack([_lower_edges(self.highest), _upper_edges(self.highest)])
        signed = np.stack([edges, -edges], axis=1).reshape(-1)
        distances = np.abs(
            np.clip(signed, self.low[:, None], self.high[:, None]) - centres[:, None]
        )
        weights = np.stack([self.counts, self.counts], axis=1) / 2
        highest = _highest_bin(float(largest.max()))
        bins = np.maximum(
            magnitude_bins(distances.astype(np.float32).view(np.int32))
            - (highest - BINS + 1),
            0,
        )
        bins += np.arange(len(bins), dtype=bins.dtype)[:, None] * BINS
        counts = np.bincount(
            bins.reshape(-1), weights.reshape(-1), minlength=len(bins) * BINS
        )
        return Magnitudes(counts.reshape(-1, BINS), _middles(highest), largest)


@dataclass(frozen=True)
class Magnitudes:
    """`counts` [C, BINS] of magnitudes in bins with these `middles` [BINS]; the `largest` [C]."""

    counts: npt.NDArray[np.int64] | Floats
    middles: Floats
    largest: Floats

    @cached_property
    def below(self) -> Floats:
        """[3, C, BINS + 1]: below each bin, and in all, how many numbers there are, their sum, and that of their squares."""
        sums = np.zeros((3, len(self.counts), self.middles.size + 1))
        for power, total in enumerate(sums):
            np.cumsum(self.counts * self.middles**power, axis=1, out=total[:, 1:])
        return sums


def _highest_bin(largest: float) -> int:
    return int(
        magnitude_bins(np.array(max(largest, SMALLEST), np.float32).view(np.int32))
    )


def _middles(highest: int) -> Floats:
    """[BINS]: the middle of each bin, if this is the last."""
    return np.asarray((_lower_edges(highest) + _upper_edges(highest)) / 2)


def _lower_edges(highest: int) -> Floats:
    return np.concatenate([[0.0], _upper_edges(highest)[:-1]])


def _upper_edges(highest: int) -> Floats:
    return magnitude_edges(highest - BINS + 2, highest + 2)
