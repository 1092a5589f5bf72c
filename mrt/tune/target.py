"""The target of a search, and when it is met.

Held-back samples are few: of 33, one is 3 %. So the result that is expected on other
samples decides: it follows from the size of the noise compared with the float model's
margins. What was counted on the held-back samples must not contradict it. The SNR must
exceed its target by a few tenths of a dB.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from mrt.errors import BadOption
from mrt.evaluate.interval import samples_to_tell
from mrt.tune.evaluator import Score

SNR_ROOM_DB = 0.3
# A count contradicts a target that would give so many misses, or more, so seldom.
LEAST_CHANCE = 0.1
FEWER = 4
"""The expectation decides with fewer samples, by this factor, than a count would need."""


@dataclass(frozen=True)
class TuningTarget:
    """`kind` agreement: a fraction of equal top-1; drop: points of top-1 lost to float; snr: dB at the worst output.

    `class_output` names the output that holds the classes, where it is not plain.
    """

    kind: str
    value: float
    class_output: str | None = None

    def __post_init__(self) -> None:
        if self.kind == "agreement" and not 0 < self.value < 1:
            raise BadOption(
                f"--target-agreement {self.value:g}: expected a fraction between 0 and 1, such as 0.98"
            )
        if self.kind == "drop" and not 0 < self.value < 100:
            raise BadOption(
                f"--target-drop {self.value:g}: expected points of top-1 accuracy, such as 0.5"
            )
        if self.kind == "snr" and not 0 < self.value < 90:
            raise BadOption(
                f"--target-snr {self.value:g}: expected decibels above 0 and below 90, such as 30"
            )

    @property
    def samples_needed(self) -> int:
        """Return the least number of held-back samples that can decide whether the target is met."""
        if self.kind == "snr":
            return 1
        share = self.value if self.kind == "agreement" else 1 - self.value / 100
        return math.ceil(samples_to_tell(share) / FEWER)

    def require_samples(self, held_back: int, source: str) -> None:
        """Raise BadOption if so few held-back samples cannot decide whether the target is met."""
        needed = self.samples_needed
        if held_back < needed:
            raise BadOption(
                f"{source}: {held_back} held-back samples are too few for {self}: one of them is {100 / held_back:.2g} %. "
                f"What other samples will give is estimated from at least {needed} held-back samples, with {needed} others "
                "to calibrate on. Give more samples, or an easier target"
            )

    def met(self, score: Score) -> bool:
        """Return whether the target is met on these samples."""
        if self.kind == "snr":
            return score.worst_snr_db >= self.value + SNR_ROOM_DB
        classes = score.classes
        assert classes is not None, "an evaluator of classes scores classes"
        allowed, counted, expected = (
            (
                1 - self.value,
                1 - classes.agreement,
                classes.expected_disagreement,
            )
            if self.kind == "agreement"
            else (
                self.value / 100,
                classes.drop / 100,
                classes.expected_drop / 100,
            )
        )
        misses = round(counted * classes.samples)
        return (
            expected <= allowed
            and chance_of(misses, classes.samples, allowed) >= LEAST_CHANCE
        )

    def __str__(self) -> str:
        if self.kind == "agreement":
            return f"agreement with float of {100 * self.value:g} %"
        if self.kind == "drop":
            return f"at most {self.value:g} points of top-1 lost"
        return f"a signal to noise of {self.value:g} dB"


def chance_of(misses: int, samples: int, share: float) -> float:
    """Return how often so many of the samples, or more, are misses if this share of all is."""
    fewer = (
        math.comb(samples, count)
        * share**count
        * (1 - share) ** (samples - count)
        for count in range(misses)
    )
    return 1 - math.fsum(fewer)


def describe(score: Score) -> str:
    """Return a line that describes a score."""
    snr = f"{score.worst_snr_db:.1f} dB"
    if score.worst_snr_db == math.inf:
        snr = "no difference"
    if score.worst_snr_db == -math.inf:
        snr = "noise in an output that is 0 in float"
    if score.classes is None:
        return snr
    classes = score.classes
    expected = classes.expected_disagreement
    parts = [
        f"agreement {100 * classes.agreement:.1f} %",
        f"expected {100 * (1 - expected):.2f} +- {100 * expected * classes.relative_error:.2f} %",
    ]
    if classes.labelled:
        parts.append(
            f"top-1 drop {classes.drop:.1f} points, expected {classes.expected_drop:.2f}"
        )
    return ", ".join([*parts, snr])
