"""The result of comparing float and integer.

Its JSON keys are part of the command's interface.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from cvm.runtime.boundary import Clipping
from mrt.evaluate.class_output import TOP, ClassOutput
from mrt.evaluate.columns import SmallColumn
from mrt.evaluate.interval import wilson_interval

FORMAT = "mrt-evaluate-2"


@dataclass(frozen=True)
class Accuracy:
    """Fractions of the samples whose class was found; None without labels or without an output of classes.

    `top5` is also None where the output is a label. `metric` is the user's own, if one was given.
    """

    top1: float | None
    top5: float | None
    samples_per_second: float
    metric: float | None = None


@dataclass(frozen=True)
class ClassFacts:
    """What is known of the classes, besides in how many samples both sides give the same."""

    output: ClassOutput | None = None
    some_output_fits: bool = True  # has the shape of scores of classes
    count: int = 0  # of classes; 0 where the output is a label
    labelled: bool = False
    # Float's class is the same in every sample, so that an agreement shows nothing.
    has_one_answer: bool = False
    # Samples in which float's best two scores tie, which count neither for nor against an agreement.
    ties: int = 0


@dataclass(frozen=True)
class NoiseFacts:
    """What the SNR over all samples does not show: decibels of each output of reals, None where there is no such figure."""

    # An output differs that is 0 in float on all samples, so that it has no SNR.
    zeros_differ: bool = False
    # counted from each element's mean over the samples
    change_db: Mapping[str, float | None] = field(default_factory=dict)
    # the SNR that other samples may have, by how much these differ
    least_snr_db: Mapping[str, float | None] = field(default_factory=dict)
    # of the sample which has more noise than all others together
    outlier_db: Mapping[str, float | None] = field(default_factory=dict)
    # of the median sample by itself, whatever few great samples have
    median_db: Mapping[str, float | None] = field(default_factory=dict)


@dataclass(frozen=True)
class ScoreFacts:
    """What outputs of probabilities hide of the scores that they are made of; by output."""

    # of each output of a Sigmoid that the program cannot raise to an answer: the most that it can give
    unreachable: Mapping[str, float] = field(default_factory=dict)
    # of each output that is nearly 0 or 1 in all samples but one at most: in how many
    saturated: Mapping[str, int] = field(default_factory=dict)
    # of each of these whose scores are values of the program: the SNR of the scores; None where nothing differs
    snr_db: Mapping[str, float | None] = field(default_factory=dict)


MOST_BITS = {"activation_bits": 16, "weight_bits": 15}
"""The most that there are, by option, from cheap to dear: the dearer one is for a program that has the cheaper."""


@dataclass(frozen=True, repr=False)
class Evaluation:
    """Float and integer side by side. `agreement`: the fraction of equal best classes in the class output, ties left out."""

    samples: int
    of_float: Accuracy
    of_integer: Accuracy
    agreement: float | None
    # of each output of reals, in the model's order; None where nothing differs
    snr_db: Mapping[str, float | None]
    # of each output of integers or booleans: the fraction of equal elements
    equal: Mapping[str, float] = field(default_factory=dict)
    classes: ClassFacts = field(default_factory=ClassFacts)
    noise: NoiseFacts = field(default_factory=NoiseFacts)
    scores: ScoreFacts = field(default_factory=ScoreFacts)
    # the noisiest small column of each output of few columns
    small_columns: Sequence[SmallColumn] = ()
    # the same of those that may be scores of classes, and so are no small columns
    possible_scores: Sequence[SmallColumn] = ()
    clipped: Mapping[str, Clipping] = field(default_factory=dict)  # by input
    # outputs of tokens, whose padding is not counted in any of their decibels
    without_padding: frozenset[str] = frozenset()
    # Float gives the same numbers for every sample, in each output.
    is_constant: bool = False
    # the options of MOST_BITS with which the program was made so
    has_most: frozenset[str] = frozenset()

    @property
    def class_output(self) -> ClassOutput | None:
        """The output that holds the classes. None: no output does, or it is not clear which."""
        return self.classes.output

    @property
    def has_top5(self) -> bool:
        """Whether the best five are worth a figure: of five classes or fewer they are all."""
        return not 0 < self.classes.count <= TOP

    def __repr__(self) -> str:
        """The lines that `mrt evaluate` prints."""
        from mrt.evaluate.evaluation_text import report_lines

        return "\n".join(report_lines(self))

    @property
    def answers(self) -> int:
        """The samples that an agreement is a fraction of: those without a tie."""
        return self.samples - self.classes.ties

    def confidence_interval(self, fraction: float) -> tuple[float, float]:
        """Return the 95 % confidence interval of a fraction of these samples; labels make every one count."""
        return wilson_interval(fraction, self.answers)

    @property
    def worst_snr_db(self) -> float | None:
        """The SNR of the worst output of reals. None: nothing differs."""
        return _least(self.snr_db)

    @property
    def worst_outlier_db(self) -> float | None:
        """The least SNR of a sample that has more noise than all others together. None: no output has one."""
        return _least(self.noise.outlier_db)

    @property
    def worst_scores_db(self) -> float | None:
        """The least SNR of scores of which saturated probabilities are made. None: there are none, or nothing differs."""
        return _least(self.scores.snr_db)

    @property
    def worst_change_db(self) -> float | None:
        """The least SNR counted from the means, of outputs not judged by their classes. None: nothing differs, or few samples."""
        judged_by_class = self.outputs_judged_by_class
        return _least(
            {
                name: decibels
                for name, decibels in self.noise.change_db.items()
                if name not in judged_by_class
            }
        )

    @property
    def outputs_judged_by_class(self) -> Collection[str]:
        """The outputs of which an agreement shows what distinguishes the samples: that of the scores, or all beside a label.

        There are none without an agreement, and where float's class is the same in every sample.
        """
        if self.agreement is None or self.classes.has_one_answer:
            return ()
        output = self.class_output
        if output is None or output.is_label:
            return self.noise.change_db
        return (output.name,)

    @property
    def lost_column(self) -> SmallColumn | None:
        """The noisiest column that the signal to noise of its output hides."""
        lost = [column for column in self.small_columns if column.is_lost]
        return min(lost, key=lambda it: it.decibels, default=None)

    def to_json(self) -> dict[str, Any]:
        """One flat object; `snr_db` is that of the first output of reals."""
        from mrt.evaluate.verdict import Verdict

        output, verdict = self.class_output, Verdict.of(self, fresh=None)
        fractions = {
            "float.top1": self.of_float.top1,
            "float.top5": self.of_float.top5,
            "integer.top1": self.of_integer.top1,
            "integer.top5": self.of_integer.top5,
            "agreement": self.agreement,
        }
        intervals = {
            name: list(self.confidence_interval(fraction))
            for name, fraction in fractions.items()
            if fraction is not None
        }
        return {
            "format": FORMAT,
            "samples": self.samples,
            "class_output": output.name if output is not None else None,
            **fractions,
            "intervals_95": intervals,
            "snr_db": next(iter(self.snr_db.values()), None),
            "snr_db.outputs": dict(self.snr_db),
            "change_db.outputs": dict(self.noise.change_db),
            "without_padding": sorted(self.without_padding),
            "equal.outputs": dict(self.equal),
            "float.metric": self.of_float.metric,
            "integer.metric": self.of_integer.metric,
            "clipped.inputs": {
                name: clipped.count for name, clipped in self.clipped.items()
            },
            "float.samples_per_second": self.of_float.samples_per_second,
            "integer.samples_per_second": self.of_integer.samples_per_second,
            "verdict": verdict.word,
            "sentence": verdict.sentence,
        }


def _least(decibels: Mapping[str, float | None]) -> float | None:
    ratios = (ratio for ratio in decibels.values() if ratio is not None)
    return min(ratios, default=None)
