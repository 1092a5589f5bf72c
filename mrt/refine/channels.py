"""What each channel of a value does over the samples: its range, mean, variance, and how large its numbers are."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from mrt.calibrate.session import Array

Floats = npt.NDArray[np.float64]

BINS_PER_OCTAVE = 16  # of magnitudes, by the leading four bits of their fraction
OCTAVES = 12  # below the largest; what is smaller falls into the lowest bin
BINS = BINS_PER_OCTAVE * OCTAVES
SMALLEST = 1e-30  # the largest magnitude, as long as nothing larger was seen
_FRACTION_BITS = 23 - 4  # of float32, behind those that choose a bin


@dataclass
class Channels:
    """Axis 1 of one value. `counts` [C, BINS] are of magnitudes, the highest bin being that of the largest seen."""

    low: Floats
    high: Floats
    sums: Floats
    squares: Floats
    counts: npt.NDArray[np.int64]
    highest: int  # the bin, among all of float32, that is the last of `counts`
    samples: int = 0
    elements: int = 0  # of each channel, that sums, squares and counts are over

    @classmethod
    def of(cls, channels: int) -> Channels:
        """Nothing seen yet."""
        low, high, sums, squares = np.zeros((4, channels))
        return cls(low, high, sums, squares, np.zeros((channels, BINS), np.int64), _highest_bin(0.0))

    @classmethod
    def together(cls, *parts: Channels) -> Channels:
        """What was seen of disjoint samples."""
        whole = cls.of(len(parts[0].low))
        for part in parts:
            whole.low, whole.high = np.minimum(whole.low, part.low), np.maximum(whole.high, part.high)
            whole.sums, whole.squares = whole.sums + part.sums, whole.squares + part.squares
            whole.samples, whole.elements = whole.samples + part.samples, whole.elements + part.elements
            whole._rise_to(part.highest)
            whole.counts += part._counts_up_to(whole.highest)
        return whole

    @property
    def largest(self) -> Floats:
        """The largest magnitude of each channel."""
        return np.maximum(self.high, -self.low)

    @property
    def mean(self) -> Floats:
        """Of each channel."""
        return self.sums / max(self.elements, 1)

    @property
    def variance(self) -> Floats:
        """Of each channel."""
        return np.maximum(self.squares / max(self.elements, 1) - self.mean**2, 0.0)

    def add(self, values: Array, few: Array) -> None:
        """See one sample [N, C, ...]: all of it for the range; for the rest `few` of it, thinned."""
        self.add_spread(few)
        rows = _rows(values)
        self.low = np.minimum(self.low, rows.min(axis=1))
        self.high = np.maximum(self.high, rows.max(axis=1))
        self._rise_to(_highest_bin(max(-float(self.low.min()), float(self.high.max()))))
        bins = _bin(_rows(few))
        bins -= self.highest - BINS + 1
        np.maximum(bins, 0, out=bins)
        bins += np.arange(len(bins), dtype=bins.dtype)[:, None] * BINS
        self.counts += np.bincount(bins.reshape(-1), minlength=self.counts.size).reshape(self.counts.shape)

    def add_spread(self, few: Array) -> None:
        """As `add`, but only for mean and variance."""
        rows = _rows(few).astype(np.float64)
        self.sums += rows.sum(axis=1)
        rows *= rows
        self.squares += rows.sum(axis=1)
        self.samples += 1
        self.elements += rows.shape[1]

    def _rise_to(self, highest: int) -> None:
        """Make this the last bin, if the last is lower."""
        if highest > self.highest:
            self.counts, self.highest = self._counts_up_to(highest), highest

    def _counts_up_to(self, highest: int) -> npt.NDArray[np.int64]:
        """The counts with this as the last bin; what falls below the first is counted there."""
        up = min(highest - self.highest, BINS)
        if up == 0:
            return self.counts
        counts = np.zeros_like(self.counts)
        counts[:, : BINS - up] = self.counts[:, up:]
        counts[:, 0] += self.counts[:, :up].sum(axis=1)
        return counts

    def centres(self) -> Floats:
        """[BINS]: the middle of each bin."""
        edges = self.edges()
        lower = np.concatenate([[0.0], edges[:-1]])
        return (lower + edges) / 2

    def edges(self) -> Floats:
        """[BINS]: the upper end of each bin."""
        bits = (np.arange(self.highest - BINS + 2, self.highest + 2, dtype=np.int32) << _FRACTION_BITS).astype(np.int32)
        return bits.view(np.float32).astype(np.float64)


def _rows(values: Array) -> Array:
    """[C, numbers of each channel]."""
    return values.swapaxes(0, 1).reshape(values.shape[1], -1)


def _bin(values: Array) -> npt.NDArray[np.int32]:
    """The exponent and the leading four bits of the fraction, as one number that grows with the magnitude."""
    bits = np.ascontiguousarray(values, np.float32).view(np.int32)
    return (bits & np.int32(0x7FFFFFFF)) >> _FRACTION_BITS


def _highest_bin(largest: float) -> int:
    return int(_bin(np.array([max(largest, SMALLEST)], np.float32))[0])
