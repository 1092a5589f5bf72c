"""The statistics of each channel of a value over the samples.

They are its range, mean and variance, and a histogram of its magnitudes.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from mrt.calibrate.counting import (
    MagnitudeCounts,
    count_magnitudes,
    magnitude_bins,
    magnitude_edges,
)
from mrt.calibrate.observed_tensor import ObservedTensor, rows_of_channels
from mrt.refine.clipping_errors import power_sums

Floats = npt.NDArray[np.float64]

# Bins of magnitudes, by the leading four bits of their fraction.
BINS_PER_OCTAVE = 16
# Octaves below the largest magnitude; smaller magnitudes fall into the lowest bin.
OCTAVES = 12
BINS = BINS_PER_OCTAVE * OCTAVES
MOST_IN_INT32 = 2**31 - 1  # the most numbers of a channel that int32 can count
SMALLEST = 1e-30  # taken as the largest magnitude until there is a larger one


@dataclass
class ChannelStatistics:
    """The statistics of the channels (axis 1) of one value; arrays are [C] unless noted.

    `counts` [C, 2, BINS] are of magnitudes, first of the numbers that are not negative,
    then of the negative ones. They are int32 as long as that suffices, because most of
    the time goes into fetching them. Their last bin is that of the largest magnitude,
    and `last_bin` is its number among the bins of all of float32. `sums`, `squares` and
    `counts` are over `elements` numbers of each channel, which may be a subsample.

    Statistics of a block of samples have `terms`: the sums and squares of each sample,
    which are added when the block is taken (`take`), because sums of floats depend on
    their order.
    """

    minimum: Floats
    maximum: Floats
    sums: Floats
    squares: Floats
    counts: MagnitudeCounts
    last_bin: int
    samples: int = 0
    elements: int = 0
    terms: list[tuple[Floats, Floats]] | None = None

    @classmethod
    def empty(
        cls, channels: int, *, of_block: bool = False
    ) -> ChannelStatistics:
        """Return the statistics of no samples."""
        sums, squares = np.zeros((2, channels))
        return cls(
            np.full(channels, np.inf),
            np.full(channels, -np.inf),
            sums,
            squares,
            np.zeros((channels, 2, BINS), np.int32),
            _bin_of(0.0),
            terms=[] if of_block else None,
        )

    @classmethod
    def merged(cls, *all_statistics: ChannelStatistics) -> ChannelStatistics:
        """Return the statistics of disjoint sets of samples as one."""
        merged = cls.empty(len(all_statistics[0].minimum))
        if (
            sum(statistics.elements for statistics in all_statistics)
            > MOST_IN_INT32
        ):
            merged.counts = merged.counts.astype(np.int64)
        for statistics in all_statistics:
            merged.minimum = np.minimum(merged.minimum, statistics.minimum)
            merged.maximum = np.maximum(merged.maximum, statistics.maximum)
            merged.sums = merged.sums + statistics.sums
            merged.squares = merged.squares + statistics.squares
            merged.samples += statistics.samples
            merged.elements += statistics.elements
            merged._raise_last_bin(statistics.last_bin)
            merged.counts += statistics._counts_up_to(merged.last_bin)
        return merged

    def __getstate__(self) -> dict[str, Any]:
        """Return the fields to send to another machine: of the counts those that are not 0, about a tenth."""
        places = np.flatnonzero(self.counts)
        numbers = self.counts.reshape(-1)[places]
        form = self.counts.shape, self.counts.dtype
        return vars(self) | {
            "counts": (*form, _narrow(places), _narrow(numbers))
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Take what `__getstate__` returned."""
        shape, dtype, places, numbers = state["counts"]
        counts = np.zeros(shape, dtype)
        counts.reshape(-1)[places] = numbers
        vars(self).update(state | {"counts": counts})

    @property
    def mean(self) -> Floats:
        """The mean of each channel."""
        return self.sums / max(self.elements, 1)

    @property
    def variance(self) -> Floats:
        """The variance of each channel."""
        of_squares = self.squares / max(self.elements, 1)
        return np.maximum(of_squares - self.mean**2, 0.0)

    def add(self, tensor: ObservedTensor) -> None:
        """Add one sample [N, C, ...]: its range, and the other statistics of its subsample."""
        self.add_moments(tensor)
        minimum, maximum = tensor.extremes
        np.minimum(self.minimum, minimum, out=self.minimum)
        np.maximum(self.maximum, maximum, out=self.maximum)
        least, greatest = tensor.range
        self._raise_last_bin(_bin_of(max(greatest, -least)))
        if self.elements > MOST_IN_INT32:
            self.counts = self.counts.astype(np.int64, copy=False)
        count_magnitudes(
            self.counts, rows_of_channels(tensor.subsample), self.last_bin
        )

    def add_moments(self, tensor: ObservedTensor) -> None:
        """Add one sample to the mean and the variance alone."""
        self._add_sums(tensor.sums, tensor.squares)
        self.samples += 1
        self.elements += tensor.subsample.size // tensor.subsample.shape[1]

    def take(self, block: ChannelStatistics) -> None:
        """Add the samples of a block, exactly as if they had been added here."""
        for sums, squares in block.terms or ():
            self._add_sums(sums, squares)
        np.minimum(self.minimum, block.minimum, out=self.minimum)
        np.maximum(self.maximum, block.maximum, out=self.maximum)
        self.samples += block.samples
        self.elements += block.elements
        self._raise_last_bin(block.last_bin)
        if self.elements > MOST_IN_INT32:
            self.counts = self.counts.astype(np.int64, copy=False)
        self.counts += block._counts_up_to(self.last_bin)

    def _add_sums(self, sums: Floats, squares: Floats) -> None:
        if self.terms is not None:
            self.terms.append((sums, squares))
        else:
            self.sums += sums
            self.squares += squares

    def magnitudes_from(self, centres: Floats) -> Magnitudes:
        """Return the magnitudes of each channel's numbers, counted from these centres [C]."""
        largest = np.maximum(self.maximum - centres, centres - self.minimum)
        if not centres.any():
            counts = self.counts.sum(axis=1)
            return Magnitudes(counts, _midpoints(self.last_bin), largest)
        last_bin = _bin_of(float(largest.max()))
        distances = self._distances_of_edges(centres).astype(np.float32)
        bins = magnitude_bins(distances.view(np.int32)) - (last_bin - BINS + 1)
        bins = np.maximum(bins, 0)
        channels = np.arange(len(bins), dtype=bins.dtype)
        bins += channels[:, None] * BINS
        # A bin may be wide, so each of its edges counts for half of its numbers.
        weights = np.stack([self.counts, self.counts], axis=1) / 2
        counted = np.bincount(
            bins.reshape(-1), weights.reshape(-1), minlength=len(bins) * BINS
        )
        return Magnitudes(
            counted.reshape(-1, BINS), _midpoints(last_bin), largest
        )

    def _distances_of_edges(self, centres: Floats) -> Floats:
        """Return the distances of the bins' edges from the centres, [C, 2 * 2 * BINS].

        First come the lower edges of positive and negative numbers, then the upper
        edges.
        """
        edges = np.stack(
            [_lower_edges(self.last_bin), _upper_edges(self.last_bin)]
        )
        signed = np.stack([edges, -edges], axis=1).reshape(-1)
        low, high = self.minimum[:, None], self.maximum[:, None]
        within = np.clip(signed, low, high)
        return np.asarray(np.abs(within - centres[:, None]))

    def _raise_last_bin(self, last_bin: int) -> None:
        """Raise the last bin to this one, if it is lower."""
        if last_bin > self.last_bin:
            self.counts, self.last_bin = self._counts_up_to(last_bin), last_bin

    def _counts_up_to(self, last_bin: int) -> MagnitudeCounts:
        """Return the counts with this as the last bin; bins below the first are added to it."""
        up = min(last_bin - self.last_bin, BINS)
        if up == 0:
            return self.counts
        counts = np.zeros_like(self.counts)
        counts[..., : BINS - up] = self.counts[..., up:]
        below = self.counts[..., :up]
        counts[..., 0] += below.sum(axis=-1)
        return counts


@dataclass(frozen=True)
class Magnitudes:
    """The magnitudes of each channel: `counts` [C, BINS] in bins with these `midpoints` [BINS].

    `largest` [C] is the largest magnitude of each channel.
    """

    counts: npt.NDArray[np.int64] | Floats
    midpoints: Floats
    largest: Floats

    @cached_property
    def power_sums(self) -> Floats:
        """[3, C, BINS + 1]: sums of the powers 0, 1 and 2 of the numbers below each bin."""
        return power_sums(self.counts, self.midpoints)


def _narrow(numbers: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return numbers from 0 on in the narrowest dtype that holds them all."""
    return numbers.astype(np.min_scalar_type(int(numbers.max(initial=0))))


def _bin_of(magnitude: float) -> int:
    """Return the number of the bin among those of all of float32."""
    number = np.array(max(magnitude, SMALLEST), np.float32)
    return int(magnitude_bins(number.view(np.int32)))


def _midpoints(last_bin: int) -> Floats:
    """Return the middle of each bin, [BINS]."""
    return np.asarray((_lower_edges(last_bin) + _upper_edges(last_bin)) / 2)


def _lower_edges(last_bin: int) -> Floats:
    return np.concatenate([[0.0], _upper_edges(last_bin)[:-1]])


def _upper_edges(last_bin: int) -> Floats:
    return magnitude_edges(last_bin - BINS + 2, last_bin + 2)
