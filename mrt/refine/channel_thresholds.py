"""Chooses where each channel is clipped and its centre, by squared error.

Thresholds fitted to the measured numbers clip larger numbers of other samples, the more
of them the fewer numbers of a channel were measured, and most of all where a channel
answers to few samples. So each half of the samples is tested with thresholds that were
chosen on the other half, raised by a factor and to a least threshold; the value gets the
two with the least error behind its readers. Half of the samples show less than all of
them do: the error of thresholds chosen on all of them, on the same, counts as well.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mrt.refine.channel_statistics import ChannelStatistics, Floats, Magnitudes
from mrt.refine.clipping_errors import clipping_errors

FACTORS = (1.0, 1.1, 1.2, 1.4, 1.7, 2.0, 2.5, 3.0)
# The least thresholds of a value's channels that are tried, over the greatest.
FLOORS = (0.0, 1 / 32, 1 / 16, 1 / 8, 1 / 4, 1 / 2, 1.0)
# The centres tried, as shares of the way from the mean to the range's middle.
SHARES = (0.0, 0.25, 0.5, 0.75, 1.0)
# The least threshold tried, over the largest magnitude.
LEAST_THRESHOLD = 1 / 12
THRESHOLDS = 48  # the number of thresholds tried
# Numbers above the lowest bin; a channel with fewer may be larger in other samples.
FEWEST_NUMBERS = 100
FEWEST_SAMPLES = 8
"""The most samples that are too few to clip a channel that was 0 in all of them.

Its threshold is then at least the largest magnitude of the value. With more samples it may
be lower, in proportion to how many more there are.
"""


def channel_centres(statistics: ChannelStatistics, steps: int) -> Floats:
    """Return the centre with the least squared error for each channel, [C]."""
    mean = statistics.mean
    middle = (statistics.minimum + statistics.maximum) / 2
    candidates = [mean + share * (middle - mean) for share in SHARES]
    errors = []
    for centres in candidates:
        _, error = _best_thresholds(statistics.magnitudes_from(centres), steps)
        errors.append(error)
    best = np.argmin(errors, axis=0)[None]
    chosen = np.take_along_axis(np.stack(candidates), best, axis=0)
    return np.asarray(chosen[0])


def squared_error(
    statistics: ChannelStatistics, centres: Floats, steps: int
) -> float:
    """Return the squared error over all channels, with these centres and the best thresholds."""
    _, errors = _best_thresholds(statistics.magnitudes_from(centres), steps)
    return float(errors.sum())


def clipping_thresholds(
    statistics: ChannelStatistics,
    halves: tuple[ChannelStatistics, ChannelStatistics],
    *,
    centres: Floats,
    steps: int,
    importance: Floats,
    bounds: tuple[float, float],
) -> Floats:
    """Return the distance from its centre at which each channel is clipped, [C].

    `steps` integers cover that distance. `statistics` are over both halves;
    `importance` [C] is the weight of a channel's squared error. `bounds` are the least
    and the greatest threshold. A channel that was 0 in all samples may be larger in
    others, so its threshold must not be too small. But no sample has tested its
    weights, which may be so large that they spoil the others', so its threshold must
    not be too great either.
    """
    magnitudes = statistics.magnitudes_from(centres)
    thresholds, _ = _best_thresholds(magnitudes, steps)
    if all(half.elements for half in halves):
        left, right = (half.magnitudes_from(centres) for half in halves)
        tests = (
            (_best_thresholds(left, steps)[0], right),
            (_best_thresholds(right, steps)[0], left),
            (thresholds, magnitudes),
        )
        choice = _best_raise(tests, steps, importance, bounds)
        thresholds = _raised(thresholds, bounds)[:, choice]
    numbers = statistics.counts[..., 1:].sum(axis=(1, 2))
    share = min(1.0, FEWEST_SAMPLES / max(statistics.samples, 1))
    raised = np.maximum(thresholds, magnitudes.largest.max() * share)
    chosen = np.where(numbers < FEWEST_NUMBERS, raised, thresholds)
    return np.clip(chosen, *bounds)


def _best_thresholds(
    magnitudes: Magnitudes, steps: int
) -> tuple[Floats, Floats]:
    """Return the thresholds with the least squared error, [C], and that error, [C]."""
    shares = np.geomspace(1.0, LEAST_THRESHOLD, THRESHOLDS)
    thresholds = magnitudes.largest[:, None] * shares
    errors = _errors(magnitudes, thresholds, steps)
    best = errors.argmin(axis=1)[:, None]
    best_threshold = np.take_along_axis(thresholds, best, axis=1)
    least_error = np.take_along_axis(errors, best, axis=1)
    return best_threshold[:, 0], least_error[:, 0]


def _best_raise(
    tests: Sequence[tuple[Floats, Magnitudes]],
    steps: int,
    importance: Floats,
    bounds: tuple[float, float],
) -> int:
    """Return which of `_raised` has the least error; each test has thresholds, and the numbers on which they are judged."""
    total = np.zeros(len(FLOORS) * len(FACTORS))
    for fitted, judged in tests:
        raised = _raised(fitted, bounds)
        errors = importance[:, None] * _errors(judged, raised, steps)
        total += np.ascontiguousarray(errors.T).sum(axis=1)
    return int(total.argmin())


def _raised(thresholds: Floats, bounds: tuple[float, float]) -> Floats:
    """Return thresholds raised by each factor and to each least threshold, [C, floors * factors]."""
    by_factor = thresholds[:, None, None] * np.array(FACTORS)
    floors = thresholds.max() * np.array(FLOORS)[:, None]
    raised = np.maximum(by_factor, floors).reshape(len(thresholds), -1)
    return np.asarray(np.clip(raised, *bounds))


def _errors(magnitudes: Magnitudes, thresholds: Floats, steps: int) -> Floats:
    """Return the squared errors at `thresholds`, both [C, thresholds]."""
    return clipping_errors(
        magnitudes.power_sums, magnitudes.midpoints, thresholds, steps
    )
