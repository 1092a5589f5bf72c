"""One sentence from the figures: chance is asked before anything is called a loss."""

import pytest

from mrt.evaluate.class_output import ClassOutput
from mrt.evaluate.compare import SampleResult
from mrt.evaluate.evaluation import (
    Accuracy,
    ClassFacts,
    Evaluation,
    NoiseFacts,
    ScoreFacts,
)
from mrt.evaluate.verdict import DOUBTFUL, GOOD, USELESS, Verdict
from mrt.page.answers import Answers
from mrt.page.limits import ANSWERS
from mrt.page.verdict import chance_of, verdict


def report(real, integer, agreement, **others) -> Evaluation:
    noise = {"snr_db": {"z": 30.0}, **others}
    return Evaluation(
        500,
        Accuracy(real, None, 1.0),
        Accuracy(integer, None, 1.0),
        agreement,
        **noise,
    )


@pytest.mark.parametrize(
    ("lost", "won", "expected"),
    [
        (0, 0, 1.0),
        (1, 0, 1.0),
        (5, 0, 2 / 32),
        (6, 0, 2 / 64),
        (10, 2, 2 * (1 + 12 + 66) / 4096),
        (7, 7, 1.0),
    ],
)
def test_chance_is_that_of_a_coin(lost, won, expected):
    assert chance_of(lost, won) == pytest.approx(expected)
    assert chance_of(won, lost) == chance_of(lost, won)


def test_chance_of_many_is_that_of_a_few_more():
    assert chance_of(520, 480) == pytest.approx(chance_of(521, 480), abs=0.02)


@pytest.mark.parametrize(
    ("figures", "answers", "word", "sentence"),
    [
        ((0.8, 0.8, 1.0), Answers(), GOOD, "No right answer was lost."),
        ((0.8, 0.79, 0.98), Answers(8, 6, 1), GOOD, "lost: 6, gained: 1; chance explains that."),
        ((0.8, 0.77, 0.95), Answers(20, 17, 2), DOUBTFUL, "chance does not explain that."),
        ((0.8, 0.83, 0.95), Answers(20, 2, 17), GOOD, "no worse than float"),
        ((0.8, 0.8, 0.7), Answers(150, 20, 20), DOUBTFUL, "do not always answer as float does"),
        ((0.8, 0.5, 0.7), Answers(150, 150, 0), DOUBTFUL, "30.0 dB"),
        ((None, None, 0.99), Answers(5), GOOD, "97.7 % to 99.6 %"),
        ((None, None, 0.5), Answers(250), DOUBTFUL, "do not always answer as float does"),
    ],
)  # fmt: skip
def test_the_sentence_is_that_of_the_figures(figures, answers, word, sentence):
    found = verdict(report(*figures), answers)
    assert found.word == word and sentence in found.sentence


@pytest.mark.parametrize(
    ("others", "word", "sentence"),
    [
        ({"snr_db": {"z": 40.0}}, GOOD, "an error of 1 % of the value (40.0 dB of signal to noise), on 500 samples."),
        ({"snr_db": {"y": 40.0, "z": 6.0}}, USELESS, "50 % of the value (6.0 dB of signal to noise) in the worst output"),
        ({"snr_db": {"z": None}}, GOOD, "The integers' outputs are float's on 500 samples."),
        (
            {"snr_db": {"z": 32.0}, "noise": NoiseFacts(change_db={"z": 3.0})},
            DOUBTFUL,
            "Counted from the outputs' means it is 3.0 dB.",
        ),
        (
            {"snr_db": {"z": 40.0}, "scores": ScoreFacts(unreachable={"z": 0.05})},
            DOUBTFUL,
            "But output 'z' is a Sigmoid's, of which the program gives 0.05",
        ),
        ({"snr_db": {"z": 15.0}}, DOUBTFUL, "outputs differ from float's: an error of 18 %"),
        ({"snr_db": {}, "equal": {"z": 0.5}}, USELESS, "50.0 % of the elements equal"),
        (
            {"snr_db": {"z": None}, "noise": NoiseFacts(zeros_differ=True)},
            DOUBTFUL,
            "Float's outputs are all 0 on 500 samples, the",
        ),
    ],
)  # fmt: skip
def test_without_classes_signal_to_noise_decides(others, word, sentence):
    found = verdict(report(None, None, None, **others), Answers())
    assert found.word == word and sentence in found.sentence


def test_answers_count_all_and_keep_the_surest():
    import numpy as np

    answers = Answers()
    for index in range(30):
        real = np.array([[0.0, 1.0 + index, 0.5]])
        integer = np.array([[0.0, 0.0, 9.0]])
        label = index % 3  # right in neither, in float, in the integers
        answers.add(
            SampleResult(
                index, {}, {"z": real}, {"z": integer}, label, ClassOutput("z")
            )
        )
    same = {"z": np.array([[1.0, 2.0]])}
    answers.add(SampleResult(30, {}, same, same, 1, ClassOutput("z")))
    answers.add(SampleResult(31, {}, same, same, 1, None))
    assert (answers.changed, answers.lost, answers.won) == (30, 10, 10)
    kept = [item.index for item in answers.surest()]
    assert kept == list(range(29, 29 - ANSWERS, -1))


@pytest.mark.parametrize("top1", [None, 0.5])
def test_an_agreement_on_one_class_shows_what_is_left(top1):
    figures = report(
        top1,
        top1,
        1.0,
        noise=NoiseFacts(change_db={"z": 3.0}),
        classes=ClassFacts(has_one_answer=True),
    )
    found = verdict(figures, Answers())
    assert found.word == DOUBTFUL
    assert found.sentence.endswith(
        "30.0 dB. Counted from the outputs' means it is 3.0 dB."
    )


@pytest.mark.parametrize("top1", [None, 0.5])
@pytest.mark.parametrize(
    ("agreement", "decibels", "word"),
    [(0.99, 12.0, DOUBTFUL), (0.5, 6.0, USELESS), (0.99, 40.0, GOOD)],
)
def test_the_word_is_that_of_a_conversion(top1, agreement, decibels, word):
    figures = report(top1, top1, agreement, snr_db={"z": decibels})
    found = verdict(figures, Answers())
    assert found.word == word == Verdict.of(figures, fresh=None).word
    assert (f"{decibels} dB" in found.sentence) == (word != GOOD)


def test_where_float_guesses_no_program_is_good():
    found = verdict(report(0.1, 0.1, 1.0), Answers(), is_guessed=True)
    assert found.word == DOUBTFUL
    assert found.sentence.startswith("Float itself is no better than guessing")
    assert (
        "The integers are as accurate as float: top-1 10.0 %" in found.sentence
    )
    useless = report(None, None, None, snr_db={"z": 6.0})
    assert verdict(useless, Answers(), is_guessed=True).word == USELESS
