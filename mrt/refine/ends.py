"""Where each channel of a value should end: by least squared error, and as far beyond as other samples ask for.

Ends that fit the samples seen clip what other samples have beyond, the more so the fewer numbers of a channel were seen. So
each half of the samples is judged by ends that were chosen on the other, a factor further out; the factor with the least
error behind the value's readers is the value's.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from cvm.program import IntArray
from mrt.refine.channels import Channels, Floats

FACTORS = (1.0, 1.1, 1.2, 1.4, 1.7, 2.0, 2.5, 3.0)
THRESHOLDS_FROM, THRESHOLDS = 1 / 12, 64  # the least threshold tried, of the largest magnitude; how many
FEWEST = 100  # numbers; a channel with fewer was silent
SILENCE = 8  # samples; a channel silent in more may end below the largest, by as much as they are more
ROUNDING = 1 / 12  # the variance of a rounding error, in steps squared


def channel_ends(
    item: Channels, halves: tuple[Channels, Channels], steps: int, importance: Floats, limits: tuple[float, float]
) -> Floats:
    """[C]: the magnitude of each channel's `steps`. `item`: both halves together. `importance` [C]: of an error's square.

    `limits` are the least and the greatest. A silent channel may speak elsewhere; but its weights, that nothing has ever
    tested, may be so large that they spoil the others'.
    """
    ends = _fitting(item, steps) * _factor(halves, steps, importance, limits)
    silent = item.counts[:, 1:].sum(axis=1) < FEWEST
    least = item.largest.max() * min(1.0, SILENCE / max(item.samples, 1))
    return np.clip(np.where(silent, np.maximum(ends, least), ends), *limits)


def _fitting(item: Channels, steps: int) -> Floats:
    """[C]: the ends with the least squared error on what was seen."""
    ends = item.largest[:, None] * np.geomspace(1.0, THRESHOLDS_FROM, THRESHOLDS)
    best = _errors(item.counts, item.centres(), ends, steps).argmin(axis=1)
    return np.asarray(np.take_along_axis(ends, best[:, None], axis=1)[:, 0])


def _factor(halves: tuple[Channels, Channels], steps: int, importance: Floats, limits: tuple[float, float]) -> float:
    """How far beyond the ends that fit one half the other half should end."""
    if not all(half.elements for half in halves):
        return 1.0
    fitting = [_fitting(half, steps) for half in halves]
    total = np.zeros(len(FACTORS))
    for own, other in zip(halves, reversed(fitting), strict=True):
        ends = np.clip(other[:, None] * np.array(FACTORS), *limits)
        errors = importance[:, None] * _errors(own.counts, own.centres(), ends, steps)
        total += np.ascontiguousarray(errors.T).sum(axis=1)
    return FACTORS[int(total.argmin())]


def _errors(counts: IntArray, centres: Floats, tops: Floats, steps: int) -> Floats:
    """[C, thresholds]: squared errors of magnitudes counted [C, bins], of `tops` [C, thresholds].

    A magnitude below half a step becomes 0, one up to the top is rounded, one beyond is clipped to it.
    """
    step = tops / steps
    rounded, clipped = np.searchsorted(centres, step / 2), np.searchsorted(centres, tops, side="right")
    number, first, second = (np.pad(np.cumsum(counts * centres**power, axis=1), ((0, 0), (1, 0))) for power in range(3))

    def between(sums: Floats, start: npt.NDArray[np.int64], stop: npt.NDArray[np.int64] | None) -> Floats:
        end = sums[:, -1:] if stop is None else np.take_along_axis(sums, stop, axis=1)
        return np.asarray(end - np.take_along_axis(sums, start, axis=1))

    above = [between(sums, clipped, None) for sums in (number, first, second)]
    lost = above[2] - 2 * tops * above[1] + tops**2 * above[0]
    return np.asarray(
        np.take_along_axis(second, rounded, axis=1) + ROUNDING * step**2 * between(number, rounded, clipped) + lost
    )
