"""Chooses where to clip from a histogram: by percentile, squared error, or information lost.

Each picker takes the histogram, the least and the greatest number, the options, and the
count of numbers that are only added up; it returns (lo, hi). For mse and entropy the
range is symmetric around 0, or one-sided if no number is negative: the two forms in
which activations are quantized.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from mrt.calibrate.histogram import CENTRE, HALF, Histogram
from mrt.exact.logarithm import logarithms
from mrt.exact.ordered_sum import row_sums
from mrt.table.table import CalibrationOptions

Picker = Callable[
    [Histogram, float, float, CalibrationOptions, int], tuple[float, float]
]
Floats = npt.NDArray[np.float64]
_CANDIDATES = 128  # thresholds tried, at equal distances


def percentile(
    histogram: Histogram,
    low: float,
    high: float,
    options: CalibrationOptions,
    summed: int = 1,
) -> tuple[float, float]:
    """Return the smallest interval of bins that leaves out few of the numbers.

    On either side it leaves out at most (100 - percentile) %.
    """
    counts = histogram.counts
    total = int(counts.sum())
    kept = math.ceil(total * Fraction(str(options.percentile)) / 100)
    top = int(np.searchsorted(np.cumsum(counts), kept)) - CENTRE
    bottom = CENTRE - int(np.searchsorted(np.cumsum(counts[::-1]), kept))
    # A bin of positive numbers ends one width further out, and so does a bin of
    # negative numbers below.
    if top >= 0:
        top += 1
    if bottom <= 0:
        bottom -= 1
    return bottom * histogram.width, top * histogram.width


def mse(
    histogram: Histogram,
    low: float,
    high: float,
    options: CalibrationOptions,
    summed: int = 1,
) -> tuple[float, float]:
    """Return the threshold with the least squared error of rounding and clipping.

    Of equal thresholds it is the largest. In a sum of n numbers the rounding errors
    mostly cancel, but the clipping errors add up: the latter count n times.
    """
    magnitudes, steps = _magnitudes(histogram, low, options)
    centres = np.arange(HALF) + 0.5
    used = magnitudes > 0
    centres, weights = centres[used], magnitudes[used].astype(np.float64)
    best, best_error = HALF, math.inf
    for threshold in _candidates(magnitudes, steps):
        grid = threshold / steps
        rounded = np.minimum(np.floor(centres / grid + 0.5), steps) * grid
        errors = weights * (centres - rounded) ** 2
        clipped = errors[np.searchsorted(centres, threshold, side="right") :]
        clipped *= summed
        if row_sums(clipped) >= best_error:
            break  # lower thresholds clip even more
        error = float(row_sums(errors))
        if error < best_error:
            best, best_error = threshold, error
    return _interval(best, histogram, low, high)


def entropy(
    histogram: Histogram,
    low: float,
    high: float,
    options: CalibrationOptions,
    summed: int = 1,
) -> tuple[float, float]:
    """Return the threshold at which rounding loses the least information (Kullback-Leibler).

    Of equal thresholds it is the largest.
    """
    counts, steps = _magnitudes(histogram, low, options)
    magnitudes = counts.astype(np.float64)
    # Zeros are exact for any threshold and would hide the other numbers.
    magnitudes[0] = 0.0
    best, best_loss = HALF, math.inf
    for threshold in _candidates(magnitudes, steps):
        loss = _divergence(magnitudes, threshold, steps)
        if loss < best_loss:
            best, best_loss = threshold, loss
    return _interval(best, histogram, low, high)


PICKERS: dict[str, Picker] = {
    "percentile": percentile,
    "mse": mse,
    "entropy": entropy,
}


def _magnitudes(
    histogram: Histogram, low: float, options: CalibrationOptions
) -> tuple[npt.NDArray[np.int64], int]:
    """Return counts by magnitude, and the number of steps from 0 to the threshold.

    There are half as many steps if there are negative values.
    """
    counts = histogram.counts
    folded = counts[CENTRE:].copy()
    folded[1:] += counts[:CENTRE][::-1]
    bits = options.bits if low >= 0 else options.bits - 1
    return folded, 2**bits - 1


def _candidates(magnitudes: npt.NDArray[np.generic], steps: int) -> list[int]:
    """Return thresholds in bins, largest first.

    They start with the entire range, and no step is finer than a bin.
    """
    used = np.flatnonzero(magnitudes)
    top = int(used[-1]) + 1 if used.size else HALF
    least = min(top, steps)
    stride = max(1, (top - least) // _CANDIDATES)
    return list(range(top, least - 1, -stride))


def _interval(
    threshold: int, histogram: Histogram, low: float, high: float
) -> tuple[float, float]:
    bound = threshold * histogram.width
    return max(low, -bound), min(high, bound)


def _divergence(magnitudes: Floats, threshold: int, steps: int) -> float:
    """Return KL(P || Q).

    P is the clipped histogram, with all numbers beyond the threshold in its last bin. Q
    is the mass of each step, spread over its used bins.
    """
    clipped = magnitudes[:threshold].copy()
    # Q is of the numbers inside alone, so that clipping costs.
    shape = clipped.copy()
    clipped[-1] += magnitudes[threshold:].sum()
    total, inside = clipped.sum(), shape.sum()
    if total == 0 or inside == 0:
        return 0.0 if total == 0 else math.inf
    group = np.minimum(np.arange(threshold) * steps // threshold, steps - 1)
    mass = np.bincount(group, shape, minlength=steps)
    occupied = np.bincount(group, shape > 0, minlength=steps)
    share = mass[group] / np.maximum(occupied[group], 1)
    spread = np.where(shape > 0, share, 0.0) / inside
    used = clipped > 0
    if np.any(spread[used] == 0):
        # A bin that holds only clipped numbers costs much, but not infinitely much.
        spread = np.maximum(spread, 1e-9)
    p = clipped[used] / total
    # numpy's logarithm and its sum differ in their last bits from one processor to another.
    return float(row_sums(p * logarithms(p / spread[used])))
