"""How the numbers of a layer are distributed on both sides, and where its integers end."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from mrt.calibrate.histogram import CENTRE, Histogram
from mrt.evaluate.layers import Layer

BARS = 64
Numbers = npt.NDArray[np.float64]


@dataclass
class Distribution:
    """The numbers of one layer."""

    layer: Layer
    real: Histogram = field(default_factory=Histogram)
    integer: Histogram = field(default_factory=Histogram)

    def add(self, real: Numbers, integer: Numbers) -> None:
        """Add one sample's."""
        for histogram, values in ((self.real, real), (self.integer, integer)):
            histogram.add(values, float(np.abs(values).max(initial=0.0)))

    def hull(self) -> tuple[float, float]:
        """Return the hull of the numbers on both sides, to the width of a bin, with a margin."""
        bounds = []
        for histogram in (self.real, self.integer):
            filled = np.flatnonzero(histogram.counts) - CENTRE
            bounds += [
                float(filled.min(initial=0)) * histogram.width,
                (float(filled.max(initial=0)) + 1) * histogram.width,
            ]
        low, high = min(bounds), max(bounds)
        margin = (high - low) / BARS
        return low - margin, high + margin

    def bars(self) -> tuple[Numbers, Numbers]:
        """Return the height of each bar, float's and the integers': logarithms of counts, 1 the greatest."""
        low, high = self.hull()
        heights = [
            np.log1p(_counts(histogram, low, high))
            for histogram in (self.real, self.integer)
        ]
        most = max(float(height.max()) for height in heights) or 1.0
        return heights[0] / most, heights[1] / most


def distributions_of(layers: Sequence[Layer]) -> dict[int, Distribution]:
    """Return an empty distribution for each layer, by its number."""
    return {layer.number: Distribution(layer) for layer in layers}


def _counts(histogram: Histogram, low: float, high: float) -> Numbers:
    """Count the numbers in equal parts of low..high."""
    filled = np.flatnonzero(histogram.counts)
    midpoints = (
        filled - CENTRE + 0.5 * np.sign(filled - CENTRE)
    ) * histogram.width
    places = np.clip(
        ((midpoints - low) / (high - low) * BARS).astype(np.int64), 0, BARS - 1
    )
    return np.bincount(
        places, weights=histogram.counts[filled], minlength=BARS
    ).astype(np.float64)
