"""What a person who reads one sentence should know: whether the integers are as good as float."""

from __future__ import annotations

import math
from dataclasses import dataclass

from mrt.evaluate.evaluation import Evaluation
from mrt.evaluate.verdict import LEAST_AGREEMENT, LEAST_DECIBELS
from mrt.page.answers import Answers

LIKE_FLOAT, WORSE, FAR = "like float", "less accurate", "far from float"
BY_CHANCE = 0.05  # the probability below which chance is no explanation


@dataclass(frozen=True)
class VerdictSentence:
    """One of the three words above, and the sentence."""

    word: str
    sentence: str


def verdict(report: Evaluation, answers: Answers) -> VerdictSentence:
    """Judge by accuracy where the classes are known, else by agreement, else by signal to noise."""
    if report.agreement is None:
        return _by_noise(report)
    if report.of_float.top1 is None or report.of_integer.top1 is None:
        return _by_agreement(report)
    return _by_accuracy(report, answers)


def _by_accuracy(report: Evaluation, answers: Answers) -> VerdictSentence:
    agreement, count = report.agreement or 0.0, report.samples
    real, integer = report.of_float.top1 or 0.0, report.of_integer.top1 or 0.0
    chance = chance_of(answers.lost, answers.won)
    figures = (
        f"top-1 {_percent(integer)} against float's {_percent(real)} on {_samples(count)}, "
        f"the same answer on {_percent(agreement)}"
    )
    exchanged = f"Right answers lost: {answers.lost}, gained: {answers.won}"
    if agreement < LEAST_AGREEMENT:
        return VerdictSentence(
            FAR, f"The integers often answer otherwise than float: {figures}."
        )
    if chance < BY_CHANCE and answers.lost > answers.won:
        return VerdictSentence(
            WORSE,
            f"The integers are less accurate than float: {figures}. {exchanged}; chance does not explain that.",
        )
    if chance < BY_CHANCE:
        return VerdictSentence(
            LIKE_FLOAT,
            f"The integers are no worse than float: {figures}. {exchanged}.",
        )
    reason = "No right answer was lost."
    if answers.lost + answers.won:
        reason = f"{exchanged}; chance explains that."
    return VerdictSentence(
        LIKE_FLOAT,
        f"The integers are as accurate as float: {figures}. {reason}",
    )


def _by_agreement(report: Evaluation) -> VerdictSentence:
    agreement = report.agreement or 0.0
    low, high = report.interval(agreement)
    figures = (
        f"the same answer on {_percent(agreement)} of {_samples(report.samples)} "
        f"(95 % interval {_percent(low)} to {_percent(high)}). The data has no labels, so accuracy is not known"
    )
    if agreement < LEAST_AGREEMENT:
        return VerdictSentence(
            FAR, f"The integers often answer otherwise than float: {figures}."
        )
    return VerdictSentence(
        LIKE_FLOAT, f"The integers answer as float does: {figures}."
    )


def _by_noise(report: Evaluation) -> VerdictSentence:
    """By the worst output of reals, and of outputs of integers by the share of equal elements."""
    known = [item for item in report.snr_db.values() if item is not None]
    equal = min(report.equal.values(), default=1.0)
    on = f"on {_samples(report.samples)}"
    if not known and equal == 1:
        return VerdictSentence(
            LIKE_FLOAT, f"The integers' outputs are float's {on}."
        )
    figures = []
    if known:
        error = 100 * 10 ** (-min(known) / 20)
        figures.append(
            f"an error of {error:.2g} % of the value ({min(known):.1f} dB of signal to noise)"
        )
    if report.equal:
        figures.append(f"{_percent(equal)} of the elements equal")
    worst = (
        ""
        if len(report.snr_db) + len(report.equal) == 1
        else " in the worst output"
    )
    sentence = f"{' and '.join(figures)}{worst}, {on}."
    is_far = (
        equal < LEAST_AGREEMENT or min(known, default=math.inf) < LEAST_DECIBELS
    )
    if is_far:
        return VerdictSentence(
            FAR, f"The integers' outputs are far from float's: {sentence}"
        )
    return VerdictSentence(
        LIKE_FLOAT, f"The integers' outputs are close to float's: {sentence}"
    )


def chance_of(lost: int, won: int) -> float:
    """The probability of exchanges as uneven if both sides were as accurate (McNemar 1947, exact)."""
    count, fewer = lost + won, min(lost, won)
    if count > 1000:  # where the normal distribution is as good
        deviations = (abs(lost - won) - 1) / math.sqrt(count)
        return math.erfc(deviations / math.sqrt(2))
    ways = sum(math.comb(count, item) for item in range(fewer + 1))
    return min(1.0, 2 * ways / (1 << count))


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"


def _samples(count: int) -> str:
    return "1 sample" if count == 1 else f"{count:,} samples"
