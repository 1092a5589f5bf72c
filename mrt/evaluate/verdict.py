"""Whether a program's answers are float's, in one word: good, look at it, or useless.

The limits are here alone, each with its reason.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from mrt.evaluate.report import Report

GOOD, DOUBTFUL, USELESS = "good", "look at it", "useless"

GOOD_DECIBELS = 20.0
"""An error of a tenth of the value: float models that differ by this much are used for each other."""
LEAST_DECIBELS = 10.0
"""An error of a third of the value."""
LEAST_AGREEMENT = 0.9
"""Of some tens of samples, those whose best two classes are close may change."""
USELESS_AGREEMENT = 0.75
"""One answer in four is another; a coin gives one in two where there are two classes."""


@dataclass(frozen=True)
class Verdict:
    """The word, and the figures from which it follows.

    `fresh` says that the samples had no part in calibration.
    """

    word: str
    samples: int
    fresh: bool
    agreement: float | None
    snr_db: float | None  # of the worst output; None where nothing differs
    equal: float | None  # elements, of the worst output of integers

    @classmethod
    def of(cls, report: Report, *, fresh: bool) -> Verdict:
        """Judge by what was measured on samples."""
        snr = report.worst_snr_db
        equal = min(report.equal.values(), default=None)
        return cls(
            _word(report.agreement, snr, equal),
            report.samples,
            fresh,
            report.agreement,
            snr,
            equal,
        )

    @property
    def sentence(self) -> str:
        """Such as: agreement 31 of 32 held-back samples, SNR 27.4 dB: good."""
        return f"{', '.join(self._figures())}: {self.word}"

    def _figures(self) -> Iterator[str]:
        samples = _samples(self.samples, self.fresh)
        agreement = self.agreement
        if agreement is not None:
            same = round(agreement * self.samples)
            yield f"agreement {same} of {samples}"
        if self.equal is not None and (agreement is None or self.equal < 1):
            yield f"{100 * self.equal:.1f} % of integers equal"
        if self.snr_db is not None:
            yield f"SNR {self.snr_db:.1f} dB"
        elif agreement is None or self.equal is None:
            yield "no difference"
        if agreement is None:
            yield f"on {samples}"

    def to_json(self) -> dict[str, Any]:
        """One flat object."""
        return {
            "verdict": self.word,
            "samples": self.samples,
            "held_back": self.fresh,
            "agreement": self.agreement,
            "snr_db": self.snr_db,
            "equal": self.equal,
            "sentence": self.sentence,
        }


def _samples(count: int, fresh: bool) -> str:
    noun = "sample" if count == 1 else "samples"
    if fresh:
        return f"{count} held-back {noun}"
    return f"{count} {noun} that were calibrated on"


def _word(
    agreement: float | None, snr: float | None, equal: float | None
) -> str:
    """One word for outputs of numbers and for classes; of two that differ, the one between.

    Classes that agree excuse noise, as noise that is low excuses classes that were close.
    """
    by_noise = _graded(math.inf if snr is None else snr, _DECIBELS)
    if equal is not None:
        by_equal = _graded(equal, _SHARES)
        by_noise = max(by_noise, by_equal, key=_WORDS.index)
    if agreement is None:
        return by_noise
    by_classes = _graded(agreement, _SHARES)
    return by_noise if by_noise == by_classes else DOUBTFUL


_WORDS = (GOOD, DOUBTFUL, USELESS)
_DECIBELS = (GOOD_DECIBELS, LEAST_DECIBELS)
_SHARES = (LEAST_AGREEMENT, USELESS_AGREEMENT)


def _graded(figure: float, limits: tuple[float, float]) -> str:
    good, least = limits
    if figure >= good:
        return GOOD
    return DOUBTFUL if figure >= least else USELESS
