"""Whether a program's answers are float's, in one word: good, look at it, or useless.

Its limits, each with its reason, are in `mrt.evaluate.limits` alone.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from mrt.evaluate.columns import SmallColumn
from mrt.evaluate.evaluation import MOST_BITS, Evaluation
from mrt.evaluate.limits import (
    FEWEST_TO_JUDGE_CHANGE,
    GOOD_DECIBELS,
    HIDDEN_CHANGE_DECIBELS,
    HIDDEN_SAMPLES_DECIBELS,
    LEAST_AGREEMENT,
    LEAST_DECIBELS,
    LEAST_DECIBELS_OF_CHANGE,
    LEAST_EQUAL,
    USELESS_AGREEMENT,
)
from mrt.evaluate.scores import NEARLY

GOOD, DOUBTFUL, USELESS = "good", "look at it", "useless"
WORDS = (GOOD, DOUBTFUL, USELESS)


@dataclass(frozen=True)
class Verdict:
    """The word, and the figures from which it follows.

    `fresh`: whether the samples had no part in calibration; None where that is not known.
    """

    word: str
    samples: int
    fresh: bool | None
    agreement: float | None
    # of the worst output; None where nothing differs, or float's outputs are all 0
    snr_db: float | None
    equal: float | None  # elements, of the worst output of integers
    zeros_differ: bool = False
    # of the worst output, counted from its mean; given where it makes the word worse
    change_db: float | None = None
    # The figures are good, but do not cover a score that the program cannot raise: that makes the word worse.
    has_unreachable_scores: bool = False
    without_padding: bool = False  # of tokens, in the decibels
    # the noisiest column that its output hides
    lost_column: SmallColumn | None = None
    column_db: float | None = None  # of the noisiest small one, hidden or not
    # of the worst scores that are before probabilities which are nearly 0 or 1
    scores_db: float | None = None
    ties: int = 0  # samples in which float's best two scores tie

    @classmethod
    def of(cls, report: Evaluation, *, fresh: bool | None) -> Verdict:
        """Judge by what was measured on samples; where the grades of `_grades` differ, the word is DOUBTFUL."""
        grades = set(_grades(report))
        is_good = grades == {GOOD}
        has_unreachable_scores = is_good and bool(report.scores.unreachable)
        is_doubtful = has_unreachable_scores or len(grades) > 1
        return cls(
            word=DOUBTFUL if is_doubtful else grades.pop(),
            samples=report.samples,
            fresh=fresh,
            agreement=report.agreement,
            snr_db=report.worst_snr_db,
            equal=min(report.equal.values(), default=None),
            zeros_differ=report.noise.zeros_differ,
            change_db=report.worst_change_db if _hides_noise(report) else None,
            has_unreachable_scores=has_unreachable_scores,
            without_padding=bool(report.without_padding),
            lost_column=report.lost_column,
            column_db=min(
                (it.decibels for it in report.small_columns), default=None
            ),
            scores_db=report.worst_scores_db,
            ties=report.classes.ties,
        )

    @property
    def is_good(self) -> bool:
        """Whether nothing has to be done."""
        return self.word == GOOD

    @property
    def has_good_figures(self) -> bool:
        """Whether no options would make them better."""
        return self.is_good or self.has_unreachable_scores

    @property
    def decibels(self) -> float:
        """The signal to noise, that of hidden scores included; infinite where nothing differs."""
        return min(_decibels(self.snr_db), _decibels(self.scores_db))

    @property
    def decibels_of_column(self) -> float:
        """The signal to noise of the noisiest small column; infinite where nothing differs."""
        return _decibels(self.column_db)

    @property
    def sentence(self) -> str:
        """Such as: agreement 31 of 32 held-back samples, SNR 27.4 dB: good."""
        samples = _samples(self._answers, self.fresh)
        return f"{', '.join(self._figures(samples))}: {self.word}"

    @property
    def figures(self) -> str:
        """The sentence without the word and without the origin of the samples."""
        return ", ".join(self._figures(_counted(self._answers)))

    def _figures(self, samples: str) -> Iterator[str]:
        agreement = self.agreement
        if agreement is not None:
            same = round(agreement * self._answers)
            yield f"agreement {same} of {samples}{self._rest}"
        some_differ = self.equal is not None and self.equal < 1
        if self.equal is not None and some_differ:
            yield f"{100 * self.equal:.1f} % of integers equal"
        if self.snr_db is not None:
            padding = " without padding" if self.without_padding else ""
            yield f"SNR {self.snr_db:.1f} dB{padding}{self._change}{self._column}"
        elif self.zeros_differ:
            yield "float's outputs are all 0, the program's are not"
        elif self.equal is None or (agreement is None and not some_differ):
            yield "no difference"
        if self.scores_db is not None:
            yield f"scores {self.scores_db:.1f} dB"
        if agreement is None:
            yield f"on {samples}"

    @property
    def _answers(self) -> int:
        """The samples that the figures are of."""
        return self.samples - self.ties

    @property
    def _rest(self) -> str:
        """What became of samples that an agreement leaves out."""
        if not self.ties:
            return ""
        return f" (float's best two scores tie in {self.ties} more)"

    @property
    def _change(self) -> str:
        if self.change_db is None:
            return ""
        return f" ({self.change_db:.1f} dB counted from the outputs' means)"

    @property
    def _column(self) -> str:
        lost = self.lost_column
        return f", but {lost.decibels:.1f} dB in {lost.name}" if lost else ""

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


def _samples(count: int, fresh: bool | None) -> str:
    if fresh is None:
        return _counted(count)
    if fresh:
        return _counted(count, "held-back ")
    were = "was" if count == 1 else "were"
    return f"{_counted(count)} that {were} calibrated on"


def _counted(count: int, kind: str = "") -> str:
    return f"{count} {kind}{'sample' if count == 1 else 'samples'}"


def _grades(report: Evaluation) -> list[str]:
    """Return two grades: of the numbers (SNR, equal integers) and of the classes (agreement).

    If they differ, the verdict is "look at it": an agreement excuses noise, and little noise excuses classes that were
    close. There is one grade, of the numbers, where there are no classes to agree.
    """
    words = [_graded(fraction, _EQUAL) for fraction in report.equal.values()]
    words.append(_graded(_decibels(report.worst_snr_db), _DECIBELS))
    words.append(_graded(_decibels(report.worst_scores_db), _DECIBELS))
    in_doubt = report.noise.zeros_differ or _hides_noise(report)
    words.append(DOUBTFUL if in_doubt else GOOD)
    lost = report.lost_column
    words.append(_graded(lost.decibels, _DECIBELS) if lost else GOOD)
    of_numbers = max(words, key=WORDS.index)
    if report.agreement is None or (lost and _rules_out_classes(report, lost)):
        return [of_numbers]
    return [of_numbers, _graded(report.agreement, _AGREEMENT)]


def _rules_out_classes(report: Evaluation, lost: SmallColumn) -> bool:
    """Whether the lost column shows that the output taken for classes, which it is of, holds none: its agreement does not count."""
    classes = report.class_output
    is_there = classes is not None and classes.name == lost.output
    return is_there and not lost.agreement_may_excuse


def _hides_noise(report: Evaluation) -> bool:
    """Whether the SNR hides noise: the error is small beside constants of an output, and large beside what varies.

    Outputs judged by their classes do not count, and fewer samples than FEWEST_TO_JUDGE_CHANGE do not show it.
    """
    if report.samples < FEWEST_TO_JUDGE_CHANGE:
        return False
    return _decibels(report.worst_change_db) < LEAST_DECIBELS_OF_CHANGE


def notes_on_change(report: Evaluation) -> list[str]:
    """What a good verdict leaves open: outputs with much in common beside which the error is small, and large beside the rest."""
    if not Verdict.of(report, fresh=None).is_good:
        return []
    if report.is_constant:
        return [
            f"float gives the same answer for all {report.samples} samples, so that these do not show whether the program "
            "keeps others. Are the samples prepared as in training (--preset, --scale, --mean, --std, --color, --layout)?"
        ]
    notes = [
        _note_on_saturated(report, *pair)
        for pair in report.scores.saturated.items()
    ]
    notes += _notes_on_small_samples(report)
    notes += _notes_on_possible_scores(report)
    return notes + [
        _note_on_change(report, name, change)
        for name, change in report.noise.change_db.items()
        if change is not None
        and change < GOOD_DECIBELS
        and _decibels(report.snr_db.get(name))
        >= change + HIDDEN_CHANGE_DECIBELS
    ]


def _notes_on_small_samples(report: Evaluation) -> list[str]:
    """Return a note on each output of which half of the samples, of low amplitude, have much more noise than all have together."""
    return [
        f"output '{name}' has {_decibels(report.snr_db.get(name)):.1f} dB over all samples, of which a few great ones have most of "
        f"the power; half of the {report.samples} samples have less than {median:.1f} dB by themselves"
        f"{_more_bits(report, '. If small ones matter, try')}"
        for name, median in report.noise.median_db.items()
        if median is not None
        and median < GOOD_DECIBELS
        and name not in report.outputs_judged_by_class
        and _decibels(report.snr_db.get(name))
        >= median + HIDDEN_SAMPLES_DECIBELS
    ]


def _notes_on_possible_scores(report: Evaluation) -> list[str]:
    """Return a note on each output of which a column is lost that may be a number by itself, or the score of a class.

    A regressor's positions and speeds cannot be distinguished from scores: both may have any sign and any size.
    """
    return [
        f"{it.name} has {it.decibels:.1f} dB, and all columns together {it.decibels_of_output:.1f} dB: it may be the score of a "
        "class, as the greatest of some samples, and is not judged"
        f"{_more_bits(report, '. If it is a number by itself, try')}"
        for it in report.possible_scores
        if it.is_lost
    ]


def _note_on_saturated(report: Evaluation, name: str, saturated: int) -> str:
    where = f"output '{name}' is within {NEARLY:g} of 0 or 1 in {saturated} of {report.samples} samples, where noise hardly shows"
    if name in report.scores.snr_db:
        decibels = report.scores.snr_db[name]
        figure = "no difference" if decibels is None else f"{decibels:.1f} dB"
        return f"{where}: the verdict counts the scores before its Softmax or Sigmoid as well ({figure})"
    return (
        f"{where}: others, of which float is less sure, may have much more. "
        "Measure on such samples, or on the scores that it is made of, if --outputs can name them"
    )


def _note_on_change(report: Evaluation, name: str, change: float) -> str:
    figures = f"SNR {report.snr_db[name]:.1f} dB, but {change:.1f} dB counted from its means"
    classes = report.class_output
    if classes is not None and classes.name == name:
        return (
            f"output '{name}' is nearly the same for all samples, as where one class is almost always the answer: {figures}. "
            "Measure on samples with the answers that matter"
        )
    return (
        f"output '{name}' is nearly the same for all samples, as a forecast beside the level of its series, or places that are "
        f"almost always of one class: {figures}. Measure on samples with the answers that matter"
        f"{_more_bits(report, ', or try')}"
    )


def _more_bits(report: Evaluation, introduction: str) -> str:
    """Return the cheapest options with more bits than the program was made with; nothing where there are none."""
    flags = ""
    for option, most in MOST_BITS.items():
        flags += f" --{option.replace('_', '-')} {most}"
        if option not in report.has_most:
            return introduction + flags
    return ""


def is_uncertain(report: Evaluation) -> bool:
    """Whether samples differ so much that, of others, the signal to noise of an output may be no longer good."""
    least = (_decibels(it) for it in report.noise.least_snr_db.values())
    return any(decibels < GOOD_DECIBELS for decibels in least)


_DECIBELS = (GOOD_DECIBELS, LEAST_DECIBELS)
_AGREEMENT = (LEAST_AGREEMENT, USELESS_AGREEMENT)
_EQUAL = (LEAST_EQUAL, USELESS_AGREEMENT)


def _decibels(snr: float | None) -> float:
    """Nothing differs where there is no figure."""
    return math.inf if snr is None else snr


def _graded(figure: float, limits: tuple[float, float]) -> str:
    good, least = limits
    if figure >= good:
        return GOOD
    return DOUBTFUL if figure >= least else USELESS
