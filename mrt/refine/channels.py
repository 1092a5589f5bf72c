"""What each channel of a value does over the samples: its range, mean, variance, and how large its numbers are."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import onnx_ir as ir

from mrt.calibrate.samples import Sample
from mrt.calibrate.session import Array, FloatSession

Floats = npt.NDArray[np.float64]

BINS_PER_OCTAVE = 16  # of magnitudes, by the leading four bits of their fraction
OCTAVES = 12  # below the largest; what is smaller falls into the lowest bin
BINS = BINS_PER_OCTAVE * OCTAVES
_FRACTION_BITS = 23 - 4  # of float32, behind those that choose a bin


@dataclass
class Channels:
    """Axis 1 of one value. `counts` [C, BINS] are of magnitudes, the highest bin ending at `magnitude_top`."""

    low: Floats
    high: Floats
    counts: npt.NDArray[np.int64]
    highest: int  # the bin, among all of float32, that is the last of `counts`
    samples: int = 0
    elements: int = 0  # of each channel
    sums: Floats = field(default_factory=lambda: np.zeros(0))
    squares: Floats = field(default_factory=lambda: np.zeros(0))

    @classmethod
    def of(cls, channels: int, largest: float) -> Channels:
        """Nothing seen yet; no magnitude will be above `largest` by much."""
        zeros = np.zeros(channels)
        counts = np.zeros((channels, BINS), np.int64)
        highest = int(_bin(np.array([max(largest, 1e-30)], np.float32))[0])
        return cls(zeros.copy(), zeros.copy(), counts, highest, sums=zeros.copy(), squares=zeros.copy())

    @property
    def mean(self) -> Floats:
        """Of each channel."""
        return self.sums / max(self.elements, 1)

    @property
    def variance(self) -> Floats:
        """Of each channel."""
        return np.maximum(self.squares / max(self.elements, 1) - self.mean**2, 0.0)

    def add(self, values: Array) -> None:
        """See one sample [N, C, ...]."""
        rows = np.ascontiguousarray(np.moveaxis(values, 1, 0)).reshape(len(self.low), -1)
        self.low = np.minimum(self.low, rows.min(axis=1))
        self.high = np.maximum(self.high, rows.max(axis=1))
        self.sums += rows.sum(axis=1, dtype=np.float64)
        self.squares += np.einsum("ij,ij->i", rows, rows, dtype=np.float64)
        self.samples += 1
        self.elements += rows.shape[1]
        bins = np.clip(_bin(rows) - (self.highest - BINS + 1), 0, BINS - 1)
        bins += np.arange(len(rows), dtype=bins.dtype)[:, None] * BINS
        self.counts += np.bincount(bins.reshape(-1), minlength=self.counts.size).reshape(self.counts.shape)

    def centres(self) -> Floats:
        """[BINS]: the middle of each bin."""
        edges = self.edges()
        lower = np.concatenate([[0.0], edges[:-1]])
        return (lower + edges) / 2

    def edges(self) -> Floats:
        """[BINS]: the upper end of each bin."""
        bits = (np.arange(self.highest - BINS + 2, self.highest + 2, dtype=np.int32) << _FRACTION_BITS).astype(np.int32)
        return bits.view(np.float32).astype(np.float64)


def _bin(values: Array) -> npt.NDArray[np.int32]:
    """The exponent and the leading four bits of the fraction, as one number that grows with the magnitude."""
    bits = np.ascontiguousarray(values, np.float32).view(np.int32)
    return (bits & np.int32(0x7FFFFFFF)) >> _FRACTION_BITS


def watch_channels(
    model: ir.Model, samples: Iterable[Sample], largest: Mapping[str, float], report: Callable[[int], None]
) -> dict[str, Channels]:
    """Statistics of the values named in `largest`, with the largest magnitude of each; `report` hears of each sample."""
    session = FloatSession(model, sorted(largest))
    found: dict[str, Channels] = {}
    for done, sample in enumerate(samples, 1):
        for name, values in session.run(sample).items():
            if name not in found:
                found[name] = Channels.of(values.shape[1], largest[name])
            found[name].add(values)
        report(done)
    return found
