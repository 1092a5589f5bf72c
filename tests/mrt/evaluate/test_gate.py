"""Limits on a report: met, missed, unknown, nonsense."""

from dataclasses import replace

import pytest

from mrt.errors import BadOption
from mrt.evaluate import Evaluation
from mrt.evaluate.evaluation import Accuracy, NoiseFacts
from mrt.evaluate.gate import parse_gate

LABELLED = Evaluation(
    10, Accuracy(0.8, 0.9, 1.0), Accuracy(0.7, 0.9, 1.0), 0.95, {"y": 21.5}
)
EXACT = Evaluation(
    10, Accuracy(None, None, 1.0), Accuracy(None, None, 1.0), 1.0, {"y": None}
)
BARE = Evaluation(
    10,
    Accuracy(None, None, 1.0),
    Accuracy(None, None, 1.0),
    None,
    {"y": None},
    noise=NoiseFacts(zeros_differ=True),
)
TWO = Evaluation(
    10,
    Accuracy(None, None, 1.0),
    Accuracy(None, None, 1.0),
    None,
    {"y": 30.0, "z": 12.0},
)


@pytest.mark.parametrize(
    "gate",
    [
        "agreement=0.95",
        "agreement=0.9",
        "integer.top1=0.7",
        "snr_db=21.5",
        "snr_db=-3",
    ],
)
def test_a_limit_that_is_reached_is_met(gate):
    assert parse_gate(gate).missed(LABELLED) is None


@pytest.mark.parametrize(
    ("gate", "said"),
    [
        ("agreement=0.96", "agreement is 0.95; expected at least 0.96"),
        ("integer.top1=0.71", "integer.top1 is 0.7; expected at least 0.71"),
        ("snr_db=22", "snr_db is 21.5; expected at least 22"),
    ],
)
def test_a_limit_that_is_not_reached_says_what_was_found(gate, said):
    assert parse_gate(gate).missed(LABELLED) == said


@pytest.mark.parametrize("agreement", [1.0, None])
@pytest.mark.parametrize("gate", ["snr=90", "snr_db=90"])
def test_no_difference_meets_any_signal_to_noise(gate, agreement):
    report = replace(EXACT, agreement=agreement)
    assert parse_gate(gate).missed(report) is None


def test_without_an_output_of_reals_no_signal_to_noise_is_known():
    report = replace(EXACT, snr_db={}, equal={"y": 1.0})
    assert "is not known" in parse_gate("snr=1").missed(report)


def test_snr_is_that_of_the_worst_output_and_snr_db_that_of_the_first():
    assert parse_gate("snr_db=20").missed(TWO) is None
    assert parse_gate("snr=20").missed(TWO) == "snr is 12; expected at least 20"


@pytest.mark.parametrize("gate", ["snr=10", "snr_db=10"])
def test_an_output_of_zeros_alone_that_differs_misses_any_signal_to_noise(gate):
    """The decibels are those of the other output."""
    report = replace(TWO, noise=NoiseFacts(zeros_differ=True))
    assert "nothing but 0" in parse_gate(gate).missed(report)


@pytest.mark.parametrize(
    "gate", ["agreement=0.5", "integer.top1=0", "snr_db=10", "snr=1"]
)
def test_a_figure_that_is_not_known_is_missed(gate):
    assert "is not known" in parse_gate(gate).missed(BARE)


@pytest.mark.parametrize(
    "gate",
    [
        "agreement",
        "agreement=",
        "agreement=x",
        "agreement=nan",
        "accuracy=1",
        "=1",
        "",
    ],
)
def test_nonsense_is_refused_with_the_known_figures(gate):
    with pytest.raises(
        BadOption,
        match=r"expected KEY=X with a number, and KEY one of agreement, integer.top1",
    ):
        parse_gate(gate)
