"""Sets samples aside before calibration, on which later choices are judged."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from mrt.calibrate.samples import Sample, Samples, evenly_spaced, few_of
from mrt.errors import BadData

SHARE = 3
"""One sample in so many is held back for a search."""
FEWEST = 16
"""At least so many are held back for a search, or half of the samples, if these are fewer."""
MOST = 256
"""At most so many are held back for a search, if it does not need more."""
FEWEST_SAMPLES = 4
"""A search needs at least so many in all."""
FEWEST_FRESH = 8
"""With fewer samples that were not calibrated on, nothing is certain."""
SHARE_OF_VERDICT = 4
"""One sample in so many is held back for the verdict."""
FEWEST_TO_SHARE = SHARE_OF_VERDICT * FEWEST_FRESH
"""Of fewer samples, none is held back for the verdict."""
MOST_OF_VERDICT = 32
"""At most so many are held back for the verdict: more do not change it."""


def count_to_hold_back(samples: Samples, needed: int = 1) -> int:
    """Return how many of these samples to set aside: `needed` or more, unless half of them are fewer."""
    total = len(samples)
    if total < FEWEST_SAMPLES:
        raise BadData(
            f"{samples.source}: {total} samples; a search needs {FEWEST_SAMPLES} or more, to hold some back"
        )
    usual = min(max(total // SHARE, min(FEWEST, total // 2)), MOST)
    return max(usual, min(needed, total // 2))


def count_for_verdict(total: int, limit: int | None) -> int:
    """Return how many samples to set aside for the verdict, of those among `total` that are used, at most `limit`.

    0: enough others are left, or calibration needs them all.
    """
    used = total if limit is None else min(total, limit)
    if used < FEWEST_TO_SHARE or total - used >= FEWEST_FRESH:
        return 0
    return min(used // SHARE_OF_VERDICT, MOST_OF_VERDICT)


def split(samples: Samples, count: int) -> tuple[Samples, Samples]:
    """Return the samples to calibrate on, and `count` others at equal distances to hold back."""
    if not 0 < count < len(samples):
        raise BadData(_cannot(samples.source, count, len(samples)))
    held = frozenset(evenly_spaced(len(samples), count))
    rest = frozenset(range(len(samples))) - held
    return _only(samples, rest), _only(samples, held)


def places_to_calibrate(
    total: int, limit: int | None, held_back: int, source: str
) -> list[int]:
    """Return the places of the samples to calibrate on: at most `limit` of `total`, without those held back."""
    used = evenly_spaced(total, limit)
    if held_back and held_back >= len(used):
        raise BadData(_cannot(source, held_back, len(used)))
    held = set(evenly_spaced(len(used), held_back))
    return [place for index, place in enumerate(used) if index not in held]


def places_to_measure(
    total: int, limit: int | None, held_back: int, count: int
) -> tuple[list[int], bool]:
    """At most `count` of `total` samples to measure a program on, and whether these were not calibrated on.

    Of the samples, `limit` were used, and `held_back` of those were set aside. Where too few
    are left, samples are taken that were calibrated on.
    """
    used = evenly_spaced(total, limit)
    if held_back:
        rest = [used[place] for place in evenly_spaced(len(used), held_back)]
    else:
        rest = sorted(set(range(total)) - set(used))
    fresh = len(rest) >= min(count, FEWEST_FRESH)
    places = rest if fresh else used
    return few_of(places, count), fresh


def _cannot(source: str, count: int, total: int) -> str:
    return f"{source}: {count} of {total} samples cannot be held back; some must be left"


def _only(samples: Samples, chosen: frozenset[int]) -> Samples:
    def read() -> Iterator[Sample]:
        return (
            sample for index, sample in enumerate(samples) if index in chosen
        )

    labels = samples.labels
    if labels is not None:
        labels = tuple(
            label for index, label in enumerate(labels) if index in chosen
        )
    places = sorted(chosen)
    return replace(
        samples,
        count=len(chosen),
        labels=labels,
        targets=None if samples.targets is None else samples.targets[places],
        _read=read,
        name_of=lambda index: samples.name_of(places[index]),
    )
