"""The verdict on a program in a sentence: whether the integers are as good as float."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

from mrt.evaluate.evaluation import Evaluation
from mrt.evaluate.unreachable_scores import unreachable_score_warnings
from mrt.evaluate.verdict import DOUBTFUL, GOOD, USELESS, Verdict
from mrt.page.answers import Answers

BY_CHANCE = 0.05  # the probability below which chance is no explanation

_GUESSED = "Float itself is no better than guessing on these samples, so that this says nothing of the program."
_ANSWERS = {
    GOOD: "The integers answer as float does",
    DOUBTFUL: "The integers do not always answer as float does",
    USELESS: "The integers often answer otherwise than float",
}
_NUMBERS = {
    GOOD: "The integers' outputs are close to float's",
    DOUBTFUL: "The integers' outputs differ from float's",
    USELESS: "The integers' outputs are far from float's",
}


@dataclass(frozen=True)
class VerdictSentence:
    """The word of `mrt.evaluate.verdict`, and the sentence."""

    word: str
    sentence: str


def verdict(
    report: Evaluation, answers: Answers, *, is_guessed: bool = False
) -> VerdictSentence:
    """Judge as `mrt convert` does; where classes are known, lost accuracy counts too.

    `is_guessed` says that float's own answers are no better than guesses, on which no program can be called good.
    """
    if is_guessed:
        by_program = verdict(report, answers)
        word = DOUBTFUL if by_program.word == GOOD else by_program.word
        return VerdictSentence(word, f"{_GUESSED} {by_program.sentence}")
    by_figures = _of_figures(
        replace(report, scores=replace(report.scores, unreachable={})), answers
    )
    unreachable = unreachable_score_warnings(report)
    if by_figures.word != GOOD or not unreachable:
        return by_figures
    return VerdictSentence(
        DOUBTFUL, f"{by_figures.sentence} But {unreachable[0]}."
    )


def _of_figures(report: Evaluation, answers: Answers) -> VerdictSentence:
    judged = Verdict.of(report, fresh=None)
    word = judged.word
    lost = report.lost_column
    if report.agreement is None or lost is not None:
        sentence = _of_numbers(report, word)
        if lost is not None:
            sentence += f" In {lost.name} it is {lost.decibels:.1f} dB."
        return VerdictSentence(word, sentence + _change(judged))
    if report.of_float.top1 is None or report.of_integer.top1 is None:
        return VerdictSentence(word, _of_agreement(report, word))
    return _of_accuracy(report, answers, word)


def _change(judged: Verdict) -> str:
    """What is left of the signal to noise where the outputs have much in common."""
    if judged.change_db is None:
        return ""
    return f" Counted from the outputs' means it is {judged.change_db:.1f} dB."


def _of_accuracy(
    report: Evaluation, answers: Answers, word: str
) -> VerdictSentence:
    real, integer = report.of_float.top1 or 0.0, report.of_integer.top1 or 0.0
    is_by_chance = chance_of(answers.lost, answers.won) >= BY_CHANCE
    has_lost = answers.lost > answers.won and not is_by_chance
    leads: Mapping[str, str] = _ANSWERS
    if has_lost and word != USELESS:
        word = DOUBTFUL
        leads = {DOUBTFUL: "The integers are less accurate than float"}
    elif word == GOOD and is_by_chance:
        leads = {GOOD: "The integers are as accurate as float"}
    elif word == GOOD:
        leads = {GOOD: "The integers are no worse than float"}
    figures = (
        f"top-1 {_percent(integer)} against float's {_percent(real)} on {_samples(report.samples)}, "
        f"the same answer on {_percent(report.agreement or 0.0)}"
    )
    sentence = f"{leads[word]}: {figures}. {_exchanged(answers)}"
    return VerdictSentence(word, sentence + _noise(report, word))


def _exchanged(answers: Answers) -> str:
    if not answers.lost + answers.won:
        return "No right answer was lost."
    exchanged = f"Right answers lost: {answers.lost}, gained: {answers.won}"
    if chance_of(answers.lost, answers.won) >= BY_CHANCE:
        return f"{exchanged}; chance explains that."
    return f"{exchanged}; chance does not explain that."


def _of_agreement(report: Evaluation, word: str) -> str:
    agreement = report.agreement or 0.0
    low, high = report.confidence_interval(agreement)
    figures = (
        f"the same answer on {_percent(agreement)} of {_samples(report.answers)} "
        f"(95 % interval {_percent(low)} to {_percent(high)}). The data has no labels, so accuracy is not known."
    )
    return f"{_ANSWERS[word]}: {figures}{_noise(report, word)}"


def _noise(report: Evaluation, word: str) -> str:
    """What lies behind the classes, where it may be why the word is not good."""
    if word == GOOD or report.worst_snr_db is None:
        return ""
    judged = Verdict.of(report, fresh=None)
    return f" Signal to noise of the outputs: {report.worst_snr_db:.1f} dB.{_change(judged)}"


def _of_numbers(report: Evaluation, word: str) -> str:
    """By the worst output of reals, and of outputs of integers by the share of equal elements."""
    on = f"on {_samples(report.samples)}"
    equal = min(report.equal.values(), default=1.0)
    if report.noise.zeros_differ:
        return f"Float's outputs are all 0 {on}, the integers' are not."
    if report.worst_snr_db is None and equal == 1:
        return f"The integers' outputs are float's {on}."
    figures = []
    if report.worst_snr_db is not None:
        error = 100 * 10 ** (-report.worst_snr_db / 20)
        figures.append(
            f"an error of {error:.2g} % of the value ({report.worst_snr_db:.1f} dB of signal to noise)"
        )
    if report.equal:
        figures.append(f"{_percent(equal)} of the elements equal")
    outputs = len(report.snr_db) + len(report.equal)
    worst = "" if outputs == 1 else " in the worst output"
    return f"{_NUMBERS[word]}: {' and '.join(figures)}{worst}, {on}."


def chance_of(lost: int, won: int) -> float:
    """The probability of exchanges as uneven if both sides were as accurate (McNemar 1947, exact)."""
    count, fewer = lost + won, min(lost, won)
    if count > 1000:  # where the normal distribution is as good
        deviations = (abs(lost - won) - 1) / math.sqrt(count)
        return math.erfc(deviations / math.sqrt(2))
    ways = sum(math.comb(count, k) for k in range(fewer + 1))
    return min(1.0, 2 * ways / (1 << count))


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"


def _samples(count: int) -> str:
    return "1 sample" if count == 1 else f"{count:,} samples"
