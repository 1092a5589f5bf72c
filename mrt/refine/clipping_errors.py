"""Computes the squared errors that clipping and rounding make, from counts of magnitudes.

The extension `mrt._compiled` computes them, or numpy where it is absent, to the same
bits: every number is computed by the same operations in the same order.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from mrt import compiled

Floats = npt.NDArray[np.float64]

POWERS = 3  # the powers 0, 1 and 2

ROUNDING_VARIANCE = 1 / 12  # of a rounding error, in steps squared


def power_sums(counts: npt.NDArray[Any], midpoints: Floats) -> Floats:
    """Return [3, C, bins + 1]: sums of the powers 0, 1 and 2 of the numbers below each bin.

    `counts` [C, bins] are of bins with these `midpoints` [bins]. The sum of power 0 is the
    count of the numbers. The last entry is over all numbers.
    """
    channels, bins = counts.shape
    extension = compiled.extension()
    if extension is not None:
        sums = np.empty((POWERS, channels, bins + 1))
        extension.power_sums(counts.astype(np.float64), midpoints, sums)
        return sums
    sums = np.zeros((POWERS, channels, bins + 1))
    for power, total in enumerate(sums):
        terms = counts * midpoints**power
        np.cumsum(terms, axis=1, out=total[:, 1:])
    return sums


def clipping_errors(
    sums: Floats, midpoints: Floats, thresholds: Floats, steps: int
) -> Floats:
    """Return the squared errors at `thresholds`, both [C, thresholds].

    `sums` are those of `power_sums`. A magnitude below half a step becomes 0, one up to
    the threshold is rounded, one beyond is clipped to it.
    """
    extension = compiled.extension()
    if extension is None:
        return _clipping_errors(sums, midpoints, thresholds, steps)
    errors = np.empty(thresholds.shape)
    extension.clipping_errors(
        sums,
        midpoints,
        np.ascontiguousarray(thresholds),
        steps,
        ROUNDING_VARIANCE,
        errors,
    )
    return errors


def _clipping_errors(
    sums: Floats, midpoints: Floats, thresholds: Floats, steps: int
) -> Floats:
    step = thresholds / steps
    first_of_channel = np.arange(len(thresholds))[:, None] * sums.shape[2]
    rounded = first_of_channel + np.searchsorted(midpoints, step / 2)
    clipped = first_of_channel + np.searchsorted(
        midpoints, thresholds, side="right"
    )
    numbers, linear, squares = (total.reshape(-1) for total in sums)
    all_numbers, all_linear, all_squares = (total[:, -1:] for total in sums)
    by_clipping = (
        (all_squares - squares[clipped])
        - 2 * thresholds * (all_linear - linear[clipped])
        + thresholds**2 * (all_numbers - numbers[clipped])
    )
    rounded_numbers = numbers[clipped] - numbers[rounded]
    by_rounding = ROUNDING_VARIANCE * step**2 * rounded_numbers
    return np.asarray(squares[rounded] + by_rounding + by_clipping)
