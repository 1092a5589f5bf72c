"""Computes extremes, sums and counts of one value's numbers.

The extension `mrt._compiled` computes them, or numpy where it is absent. Both compute
the same bits on every processor: counts are integers, and a sum has one order. LANES
sums begin at 0 and take the numbers of a row in turn; then the lanes are added, one
after another.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from mrt import compiled
from mrt.exact.ordered_sum import row_sums

Array = npt.NDArray[Any]
Floats = npt.NDArray[np.float64]
Counts = npt.NDArray[np.int64]
MagnitudeCounts = npt.NDArray[np.int32 | np.int64]

LANES = 8
# Numbers that numpy handles at a time, to stay in the cache.
_BLOCK = 2**16
# The least exponent with which the factor of a bin's width is a float32.
_LEAST_NARROW = -119
# Fraction bits of float32 behind those that choose a bin of magnitude.
_FRACTION_BITS = 23 - 4
_ALL_BINS = 2 ** (8 + 4) - 1  # the exponent and fraction bits that choose a bin


def extremes(rows: Array) -> tuple[Array, Array]:
    """Return the least and the greatest number of each row of rows [C, n]: [C], [C].

    They are NaN where a number is NaN, inf and -inf of an empty row; zeros are
    positive.
    """
    native = _native_for(rows)
    if native is None:
        return _extremes(rows)
    low, high = np.empty((2, len(rows)), np.float32)
    native.extremes(np.ascontiguousarray(rows), low, high)
    return low, high


def moments(rows: Array) -> tuple[Floats, Floats]:
    """Return the sum of the numbers of rows [C, n], and of their squares: [C], [C]."""
    native = _native_for(rows)
    if native is None:
        return _moments(rows)
    sums, squares = np.empty((2, len(rows)))
    native.moments(np.ascontiguousarray(rows), sums, squares)
    return sums, squares


def count_bins(counts: Counts, values: Array, exponent: int) -> None:
    """Add finite numbers to the counts of bins 2**exponent wide, with bin 0 in the middle.

    The index of a bin is truncated toward 0. No number may lie beyond the last bins.
    """
    native = _native_for(values)
    if native is None:
        _count_bins(counts, values.reshape(-1), exponent)
    else:
        native.count_bins(
            counts, np.ascontiguousarray(values).reshape(-1), exponent
        )


def count_magnitudes(
    counts: MagnitudeCounts, rows: Array, highest: int
) -> None:
    """Add rows [C, n] of finite numbers to counts [C, 2, bins] of magnitudes.

    Index 0 is for numbers from 0 on, 1 for those below 0. The last bin is `highest`,
    and no number may lie beyond it; the first bin takes all lower ones.
    """
    native = _native_for(rows)
    if native is None:
        _count_magnitudes(counts, rows, highest)
    else:
        native.count_magnitudes(counts, np.ascontiguousarray(rows), highest)


def magnitude_bins(bits: npt.NDArray[np.int32]) -> npt.NDArray[np.int32]:
    """Return the exponent and the first four bits of the fraction of float32s.

    They order the numbers by magnitude.
    """
    bins = bits >> _FRACTION_BITS
    bins &= _ALL_BINS
    return bins


def magnitude_edges(first: int, stop: int) -> Floats:
    """Return the least magnitude of each of these bins."""
    return (
        (np.arange(first, stop, dtype=np.int32) << _FRACTION_BITS)
        .view(np.float32)
        .astype(np.float64)
    )


def _native_for(values: Array) -> Any:
    """Return the extension, if it takes numbers of this dtype."""
    return (
        compiled.extension()
        if values.dtype == np.float32 and values.flags.aligned
        else None
    )


def _extremes(rows: Array) -> tuple[Array, Array]:
    if rows.dtype.kind != "f":  # bytes, integers
        rows = rows.astype(np.float64)
    low, high = np.empty((2, len(rows)), rows.dtype)
    step = max(1, _BLOCK // max(rows.shape[1], 1))
    for start in range(0, len(rows), step):
        block = slice(start, start + step)
        rows[block].min(axis=1, out=low[block], initial=np.inf)
        rows[block].max(axis=1, out=high[block], initial=-np.inf)
    return low + rows.dtype.type(0), high + rows.dtype.type(0)


def _moments(rows: Array) -> tuple[Floats, Floats]:
    count, length = rows.shape
    lanes = (
        np.arange(count)[:, None] * LANES + np.arange(length) % LANES
    ).reshape(-1)
    numbers = rows.astype(np.float64).reshape(-1)

    def sums(weights: Floats) -> Floats:
        """Sum with np.bincount, which adds numbers one after another to a lane that begins at 0."""
        of_lanes = np.bincount(lanes, weights, minlength=count * LANES)
        floats = of_lanes.astype(np.float64, copy=False)
        return row_sums(floats.reshape(count, LANES))

    return sums(numbers), sums(numbers * numbers)


def _count_bins(counts: Counts, flat: Array, exponent: int) -> None:
    # A power of two scales floats exactly, and the cast truncates toward zero.
    narrow = flat.dtype == np.float32 and exponent >= _LEAST_NARROW
    dtype = np.dtype(np.float32 if narrow else np.float64)
    factor = np.array(math.ldexp(1.0, -exponent), dtype)
    for start in range(0, flat.size, _BLOCK):
        block = flat[start : start + _BLOCK].astype(dtype, copy=False)
        bins = (block * factor).astype(np.int32)
        bins += counts.size // 2
        counts += np.bincount(bins, minlength=counts.size)


def _count_magnitudes(
    counts: MagnitudeCounts, rows: Array, highest: int
) -> None:
    channels, _, size = counts.shape
    without_negative_zeros = np.add(rows, 0, dtype=np.float32)
    bits = without_negative_zeros.view(np.int32)
    lowest = highest - size + 1
    places = np.maximum(magnitude_bins(bits), lowest) - lowest
    places += (bits < 0) * np.int32(size)
    places += (np.arange(channels, dtype=np.int32) * (2 * size))[:, None]
    counts += np.bincount(places.reshape(-1), minlength=counts.size).reshape(
        counts.shape
    )
