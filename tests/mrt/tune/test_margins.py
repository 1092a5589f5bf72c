"""How often noise overturns the best class, in numbers worked out by hand or by integrating the normal density."""

import math

import numpy as np
import pytest

from mrt.tune.margins import (
    ClassMargins,
    expected_disagreement,
    is_distribution,
)

TAIL_OF_1 = 0.15865525393145707  # of the normal distribution above 1


def test_without_noise_nothing_is_overturned():
    assert expected_disagreement([0.0, 1.0], [0.0, 0.0]) == 0.0


def test_two_equal_classes_are_overturned_every_other_time():
    assert expected_disagreement([0.0] * 20, [3.0]) == 0.5


def test_margins_far_above_the_noise_count_by_the_normal_tail():
    # the lowest 8 of 9 lie evenly in 0..0; the ninth is one deviation away
    assert expected_disagreement([0.0] * 8 + [2.0], [2.0]) == pytest.approx(
        (8 * 0.5 + TAIL_OF_1) / 9, abs=1e-12
    )


def test_low_margins_are_spread_evenly_from_0():
    x = (np.arange(200_000) + 0.5) / 200_000 * 1.5
    average = np.mean([math.erfc(item / math.sqrt(2)) / 2 for item in x])
    assert expected_disagreement([1.5] * 8, [1.0]) == pytest.approx(
        average, abs=1e-9
    )


def test_one_noisy_sample_does_not_speak_for_the_quiet_ones():
    margins = [1.0] * 100
    alone = expected_disagreement(margins, [5.0])
    assert expected_disagreement(margins, [5.0] + [0.0] * 9) == pytest.approx(
        alone / 10
    )


def test_a_contest_is_among_the_best_six():
    margins_of_sample = ClassMargins.of(
        np.array([[0.0, 9.0, 5.0, -3.0, 7.0, 1.0, 2.0, -9.0]])
    )
    assert margins_of_sample.classes.tolist() == [1, 4, 2, 6, 5, 0]
    assert margins_of_sample.margins.tolist() == [2.0, 4.0, 7.0, 8.0, 9.0]
    assert margins_of_sample.noise(
        np.array([0.0, 8.0, 5.0, 0, 9.0, 1.0, 2.0, 0])
    ).tolist() == [
        -3.0,
        -1.0,
        -1.0,
        -1.0,
        -1.0,
    ]


def test_probabilities_are_compared_as_logarithms_and_tiny_ones_not_at_all():
    margins_of_sample = ClassMargins.of(np.array([0.5, 0.4999, 0.0001, 0.0]))
    assert margins_of_sample.classes.tolist() == [0, 1]
    assert margins_of_sample.noise(np.array([0.25, 0.5, 0.25, 0.0]))[
        0
    ] == pytest.approx(math.log(0.4999) - math.log(0.5) - math.log(2))


@pytest.mark.parametrize(
    ("output", "expected"),
    [([0.2, 0.8], True), ([0.3, 0.8], False), ([-0.2, 1.2], False)],
)
def test_what_is_a_distribution(output, expected):
    assert is_distribution(np.array(output)) is expected
