"""The counts behind a report: rankings, ties, and signal to noise."""

import numpy as np
import pytest

from mrt.evaluate.scores import (
    Constancy,
    Hits,
    Noise,
    OutputNoise,
    Saturation,
    ranking,
    ratio_in_decibels,
)


def test_the_best_classes_come_first() -> None:
    assert ranking(np.array([[0.1, 0.9, 0.5]]), 5) == [1, 2, 0]
    assert ranking(np.array([[0.1, 0.9, 0.5]]), 1) == [1]


def test_of_equal_classes_the_lowest_index_wins() -> None:
    assert ranking(np.array([[1, 3, 3, 0, 3, 1]]), 5) == [1, 2, 4, 0, 5]
    assert ranking(np.tile([0.0, 7.0], 500), 5) == [1, 3, 5, 7, 9]


def test_the_least_integer_does_not_win_by_wrapping() -> None:
    assert ranking(np.array([-128, 127], np.int8), 2) == [1, 0]


@pytest.mark.parametrize(
    ("shape", "is_vector"),
    [((1, 4), True), ((4,), True), ((1, 4, 1, 1), True), ((1, 2, 2), False)],
)
def test_a_vector_of_classes_has_one_dimension_above_one(
    shape: tuple[int, ...], is_vector: bool
) -> None:
    assert (ranking(np.arange(4).reshape(shape), 1) == [3]) is is_vector


def test_a_single_number_ranks_no_classes() -> None:
    assert ranking(np.array([[7.0]]), 5) is None


def test_hits_count_the_best_and_the_best_five() -> None:
    hits = Hits()
    for label in (4, 3, 9):
        hits.add(label, [4, 1, 2, 0, 3, 9])
    assert (hits.top1, hits.top5) == (1, 2)


def test_decibels_compare_the_power_of_signal_and_noise() -> None:
    noise = Noise()
    noise.add(np.array([3.0, 0.0], np.float32), np.array([3.0, 0.1]))
    noise.add(np.array([1.0], np.float32), np.array([1.3]))
    assert noise.decibels() == pytest.approx(20.0)  # 10 / (0.01 + 0.09)


def test_decibels_of_no_difference_are_no_number() -> None:
    noise = Noise()
    noise.add(np.array([1.0]), np.array([1.0]))
    assert noise.decibels() is None


def test_decibels_of_change_leave_out_what_all_samples_share() -> None:
    noise = OutputNoise()
    rows = np.array([[200.0 + sample, -7.0] for sample in range(4)])
    for row in rows[:-1]:
        noise.add(row, row + 0.5)
        assert noise.decibels_of_change() is None  # a mean of few samples
    noise.add(rows[-1], rows[-1] + 0.5)
    power = ((rows - rows.mean(axis=0)) ** 2).sum()  # 5
    assert noise.decibels_of_change() == pytest.approx(
        10 * np.log10(power / (8 * 0.25))
    )
    assert noise.decibels() > 48


def test_what_is_not_counted_changes_no_figure() -> None:
    rows = np.array([[200.0 + sample, -7.0] for sample in range(8)])
    alone, beside = OutputNoise(), OutputNoise()
    for sample, row in enumerate(rows):
        alone.add(row, row + 0.5)
        long = np.array([*row, 3.0 * sample])
        errors = np.array([0.5, 0.5, 90.0])
        beside.add(long, long + errors, np.array([1, 1, 0], bool))
    assert beside.decibels() == alone.decibels()
    assert beside.decibels_of_change() == alone.decibels_of_change()
    assert beside.least_decibels() == alone.least_decibels()


def test_the_mean_of_an_element_is_over_the_samples_that_count_it() -> None:
    noise = OutputNoise()
    for value, counted in ((200.0, 1), (5.0, 0), (202.0, 1), (7.0, 0)):
        array = np.array([value])
        noise.add(array, array + 0.5, np.array([counted], bool))
    # the mean is 201, so that the change is 1 + 1
    assert noise.decibels_of_change() == pytest.approx(10 * np.log10(2 / 0.5))


def test_outputs_that_never_change_have_no_decibels_of_change() -> None:
    noise = OutputNoise()
    for _ in range(9):
        noise.add(np.array([200.0]), np.array([201.0]))
    assert noise.decibels_of_change() is None


def test_other_samples_may_have_the_noise_of_two_standard_errors() -> None:
    noise = OutputNoise()
    for error in (0.1, 0.1, 0.3):
        noise.add(np.array([1.0, 0.0]), np.array([1.0 - error, 0.0]))
    # Noise to signal is 0.11 / 3; without a sample 0.1 / 2 twice, and 0.02 / 2, whose
    # jackknife error is sqrt(2 / 3 * (2 * 0.04 / 3)^2 * 1.5) = 0.08 / 3.
    assert noise.least_decibels() == pytest.approx(10 * np.log10(3 / 0.27))


def test_samples_that_are_alike_leave_nothing_open() -> None:
    noise = OutputNoise()
    for _ in range(4):
        noise.add(np.array([1.0]), np.array([1.1]))
    assert noise.least_decibels() == pytest.approx(20.0)


@pytest.mark.parametrize(
    ("errors", "decibels"),
    [
        ((0.1, 0.1, 0.1, 0.2), 20 * np.log10(0.5 / 0.2)),
        ((0.1, 0.1, 0.1, 0.17), None),
        ((0.0, 0.1, 0.2), None),
        ((0.0, 0.0, 0.0, 0.0), None),
    ],
    ids=["more than the rest", "less", "few samples", "no noise"],
)
def test_a_sample_with_more_noise_than_all_others_is_told(
    errors: tuple[float, ...], decibels: float | None
) -> None:
    noise = OutputNoise()
    for error in errors:
        noise.add(np.array([0.5]), np.array([0.5 + error]))
    assert noise.decibels_of_outlier() == pytest.approx(decibels)


@pytest.mark.parametrize("errors", [[0.1], [0.0, 0.0]])
def test_one_sample_and_no_noise_tell_nothing_of_others(
    errors: list[float],
) -> None:
    noise = OutputNoise()
    for error in errors:
        noise.add(np.array([1.0]), np.array([1.0 + error]))
    assert noise.least_decibels() is None


def test_a_signal_of_one_sample_alone_is_certain_of_nothing() -> None:
    noise = OutputNoise()
    for signal in (0.0, 1.0, 0.0):
        noise.add(np.array([signal]), np.array([signal + 0.1]))
    assert noise.least_decibels() == -np.inf


@pytest.mark.parametrize(
    "last, is_constant",
    [
        ({"y": [0.5, 7.0], "z": [True]}, True),
        ({"y": [0.5, 7.1], "z": [True]}, False),
        ({"y": [0.5, 7.0], "z": [False]}, False),
    ],
    ids=["the same", "a number", "a truth value"],
)
def test_one_sample_whose_outputs_are_others_is_enough(
    last: dict[str, list[float]], is_constant: bool
) -> None:
    constancy = Constancy()
    same = {"y": np.array([0.5, 7.0]), "z": np.array([True])}
    other = {name: np.array(values) for name, values in last.items()}
    for outputs in (same, same, other):
        constancy.add(outputs)
        assert not constancy.is_constant  # of too few
    constancy.add(same)
    assert constancy.is_constant == is_constant


def test_the_first_outputs_are_kept_though_their_memory_is_used_again() -> None:
    constancy, memory = Constancy(), np.zeros(2)
    for sample in range(4):
        memory[:] = sample
        constancy.add({"y": memory})
    assert not constancy.is_constant


def test_powers_have_the_same_bits_on_every_machine() -> None:
    """The greatest square meets the other 999 at once or one by one: numpy's order would lose some."""
    real = np.ones(1000)
    real[[0, 500]] = 2.0**26.5, 0.5
    noise = Noise()
    noise.add(real, np.zeros(1000))
    # Halves of halves: the first number of each half is added to 2^53, which keeps even sums only.
    assert noise.signal == noise.noise == _by_halves((real**2).tolist())


def _by_halves(numbers: list[float]) -> float:
    while len(numbers) > 1:
        half = len(numbers) // 2
        odd = numbers[2 * half :]
        numbers = [
            a + b
            for a, b in zip(
                numbers[:half], numbers[half : 2 * half], strict=True
            )
        ]
        numbers[0] += sum(odd)
    return numbers[0]


@pytest.mark.parametrize(
    ("shares", "hides"),
    [
        ([0.0001] * 8, True),
        ([0.0001] * 7 + [0.4], True),
        ([0.0001] * 6 + [0.4, 0.4], False),
        ([0.0001] * 3, False),  # too few to tell
        ([0.0] * 8, False),  # votes of trees
        ([0.0] * 7 + [0.4], False),
        ([0.0] * 7 + [0.0001], True),
        ([0.0001] * 7 + [1.5], False),  # no probabilities
        ([0.0001] * 7 + [-0.5], False),
    ],
)
def test_shares_that_are_nearly_all_0_or_1_hide_noise(
    shares: list[float], hides: bool
) -> None:
    saturation = Saturation()
    for share in shares:
        saturation.add(np.array([share, 1 - share]))
    assert saturation.hides_noise == hides


@pytest.mark.parametrize(
    ("signal", "noise"),
    [
        (1.0, np.inf),
        (np.inf, np.inf),
        (np.inf, 1.0),
        (1e-300, 1e300),
        (1.0, np.nan),
        (0.0, 1.0),
        (1.0, 0.0),
    ],
)
def test_a_ratio_that_is_no_finite_number_has_no_decibels(
    signal: float, noise: float
) -> None:
    """Masks of -3.4e38 are squared in the noise of a layer."""
    assert ratio_in_decibels(signal, noise) is None


def test_the_median_sample_does_not_count_by_its_size_and_silence_not_at_all():
    noise = OutputNoise()
    for size, error in [(100.0, 0.1)] * 3 + [(1.0, 0.1)] * 5 + [(0.0, 0.1)] * 4:
        noise.add(np.array([size], np.float32), np.array([size + error]))
    assert noise.median_decibels() == pytest.approx(20.0)
    assert noise.decibels() == pytest.approx(53.98, abs=0.1)
    few = OutputNoise()
    few.add(np.array([1.0], np.float32), np.array([1.1]))
    assert few.median_decibels() is None
