"""Where each channel of a value should end, and around what it should be counted: by least squared error.

Ends that fit the samples seen clip what other samples have beyond, the more so the fewer numbers of a channel were seen. So
each half of the samples is judged by ends that were chosen on the other, a factor further out; the factor with the least
error behind the value's readers is the value's.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mrt.refine.channels import Channels, Floats, Magnitudes

FACTORS = (1.0, 1.1, 1.2, 1.4, 1.7, 2.0, 2.5, 3.0)
SHARES = (
    0.0,
    0.25,
    0.5,
    0.75,
    1.0,
)  # of the way from a channel's mean to the middle of its range
THRESHOLDS_FROM, THRESHOLDS = (
    1 / 12,
    48,
)  # the least threshold tried, of the largest magnitude; how many
FEWEST = 100  # numbers; a channel with fewer was silent
SILENCE = 8  # samples; a channel silent in more may end below the largest, by as much as they are more
ROUNDING = 1 / 12  # the variance of a rounding error, in steps squared


def channel_centres(item: Channels, steps: int) -> Floats:
    """[C]: around what each channel loses least."""
    middle = (item.low + item.high) / 2
    tried = [item.mean + share * (middle - item.mean) for share in SHARES]
    losses = [_fitting(item.about(centres), steps)[1] for centres in tried]
    return np.asarray(
        np.take_along_axis(np.stack(tried), np.argmin(losses, axis=0)[None], axis=0)[0]
    )


def channel_ends(
    item: Channels,
    halves: tuple[Channels, Channels],
    centres: Floats,
    steps: int,
    importance: Floats,
    limits: tuple[float, float],
) -> Floats:
    """[C]: how far from its centre each channel's `steps` reach. `item`: both halves. `importance` [C]: of an error's square.

    `limits` are the least and the greatest. A silent channel may speak elsewhere; but its weights, that nothing has ever
    tested, may be so large that they spoil the others'.
    """
    seen = item.about(centres)
    ends = _fitting(seen, steps)[0]
    if all(half.elements for half in halves):
        ends = ends * _factor(
            [half.about(centres) for half in halves], steps, importance, limits
        )
    silent = item.counts[..., 1:].sum(axis=(1, 2)) < FEWEST
    least = seen.largest.max() * min(1.0, SILENCE / max(item.samples, 1))
    return np.clip(np.where(silent, np.maximum(ends, least), ends), *limits)


def _fitting(seen: Magnitudes, steps: int) -> tuple[Floats, Floats]:
    """[C], [C]: the ends with the least squared error on what was seen, and that error."""
    ends = seen.largest[:, None] * np.geomspace(1.0, THRESHOLDS_FROM, THRESHOLDS)
    errors = _errors(seen, ends, steps)
    best = errors.argmin(axis=1)[:, None]
    return np.take_along_axis(ends, best, axis=1)[:, 0], np.take_along_axis(
        errors, best, axis=1
    )[:, 0]


def _factor(
    halves: Sequence[Magnitudes],
    steps: int,
    importance: Floats,
    limits: tuple[float, float],
) -> float:
    """How far beyond the ends that fit one half the other half should end."""
    fitting = [_fitting(half, steps)[0] for half in halves]
    total = np.zeros(len(FACTORS))
    for own, other in zip(halves, reversed(fitting), strict=True):
        ends = np.clip(other[:, None] * np.array(FACTORS), *limits)
        errors = importance[:, None] * _errors(own, ends, steps)
        total += np.ascontiguousarray(errors.T).sum(axis=1)
    return FACTORS[int(total.argmin())]


def _errors(seen: Magnitudes, tops: Floats, steps: int) -> Floats:
    """[C, thresholds]: squared errors of what was seen, of `tops` [C, thresholds].

    A magnitude below half a step becomes 0, one up to the top is rounded, one beyond is clipped to it.
    """
    step = tops / steps
    of_channel = np.arange(len(tops))[:, None] * seen.below.shape[2]
    rounded = of_channel + np.searchsorted(seen.middles, step / 2)
    clipped = of_channel + np.searchsorted(seen.middles, tops, side="right")
    number, first, second = (sums.reshape(-1) for sums in seen.below)
    all_numbers, all_first, all_second = (sums[:, -1:] for sums in seen.below)
    up_to_top = number[clipped]
    lost = (
        (all_second - second[clipped])
        - 2 * tops * (all_first - first[clipped])
        + tops**2 * (all_numbers - up_to_top)
    )
    return np.asarray(
        second[rounded] + ROUNDING * step**2 * (up_to_top - number[rounded]) + lost
    )
