"""Samples set aside: how many, which, and that nothing is in both parts."""

from dataclasses import replace

import numpy as np
import pytest

from mrt.calibrate.held_back import (
    count_for_verdict,
    count_to_hold_back,
    places_to_calibrate,
    places_to_measure,
    split,
)
from mrt.calibrate.samples import Samples
from mrt.errors import BadData


def numbered(count: int) -> Samples:
    return Samples(
        ("x",),
        count,
        tuple(range(count)),
        "test",
        lambda: iter({"x": np.float32([i])} for i in range(count)),
    )


@pytest.mark.parametrize(
    ("total", "held"),
    [
        (4, 2),
        (10, 5),
        (31, 15),
        (32, 16),
        (47, 16),
        (48, 16),
        (100, 33),
        (768, 256),
        (5000, 256),
    ],
)
def test_a_third_at_least_16_of_few_the_half_and_at_most_256(total, held):
    assert count_to_hold_back(numbered(total)) == held


def test_both_parts_together_are_all_samples_in_order_and_labels_go_along():
    rest, held = split(numbered(10), 3)
    assert (
        [int(sample["x"][0]) for sample in held]
        == [0, 3, 6]
        == list(held.labels or ())
    )
    assert (
        [int(sample["x"][0]) for sample in rest]
        == [1, 2, 4, 5, 7, 8, 9]
        == list(rest.labels or ())
    )
    assert (len(rest), len(held)) == (7, 3)


def test_targets_go_along():
    targets = np.linspace(0, 0.9, 10)
    rest, held = split(replace(numbered(10), labels=None, targets=targets), 3)
    assert np.array_equal(held.targets, targets[[0, 3, 6]])
    assert np.array_equal(rest.targets, targets[[1, 2, 4, 5, 7, 8, 9]])


def test_too_few_samples_are_refused():
    with pytest.raises(BadData, match="3 samples; a search needs 4 or more"):
        count_to_hold_back(numbered(3))


@pytest.mark.parametrize("count", [0, 10, 11])
def test_something_must_be_left_and_something_held(count):
    with pytest.raises(
        BadData, match=f"{count} of 10 samples cannot be held back"
    ):
        split(numbered(10), count)


@pytest.mark.parametrize(
    ("total", "needed", "held"),
    [(100, 50, 50), (100, 60, 50), (1000, 400, 400)],
)
def test_as_many_as_are_needed_if_half_are_left(total, needed, held):
    assert count_to_hold_back(numbered(total), needed) == held


def test_samples_keep_their_names_in_both_parts():
    rest, held = split(numbered(9), 3)
    assert [held.name_of(index) for index in range(3)] == [
        *("sample 0", "sample 3", "sample 6")
    ]
    assert rest.name_of(5) == "sample 8"


@pytest.mark.parametrize(
    ("total", "limit", "held_back", "count", "places", "fresh"),
    [
        # All were calibrated on.
        (10, None, 0, 4, [0, 2, 5, 7], False),
        (3, None, 0, 32, [0, 1, 2], False),
        # 0, 2, 4, ... were calibrated on, the others were not.
        (20, 10, 0, 5, [1, 5, 9, 13, 17], True),
        (20, 10, 0, 32, [1, 3, 5, 7, 9, 11, 13, 15, 17, 19], True),
        # Too few others are left: 7 where 8 are wanted.
        (20, 13, 0, 8, [0, 1, 4, 6, 9, 12, 13, 16], False),
        (20, 13, 0, 2, [2, 11], True),
        # Of 0, 2, 4, ... 18, two were set aside.
        (20, 10, 2, 2, [0, 10], True),
        (16, None, 8, 32, [0, 2, 4, 6, 8, 10, 12, 14], True),
    ],
)
def test_a_program_is_measured_on_samples_not_calibrated_on_if_enough_are_left(
    total, limit, held_back, count, places, fresh
):
    found = places_to_measure(total, limit, held_back, count)
    assert found == (places, fresh)


@pytest.mark.parametrize(
    ("total", "limit", "held"),
    [
        (31, None, 0),  # calibration needs them all
        (32, None, 8),
        (64, None, 16),
        (100, None, 25),
        (128, None, 32),
        (5000, None, 32),
        # Others are left: none is held back.
        (100, 92, 0),
        (100, 93, 23),
        (100, 200, 25),
        (1000, 31, 0),
    ],
)
def test_a_quarter_is_held_back_for_the_verdict_unless_others_are_left(
    total, limit, held
):
    assert count_for_verdict(total, limit) == held


@pytest.mark.parametrize(
    ("total", "limit", "held_back"), [(10, None, 3), (20, 10, 4), (32, None, 8)]
)
def test_what_is_held_back_is_measured_on_and_all_else_is_calibrated_on(
    total, limit, held_back
):
    calibrated = places_to_calibrate(total, limit, held_back, "test")
    measured, _ = places_to_measure(total, limit, held_back, held_back)
    used = range(0, total, 2) if limit else range(total)
    assert sorted([*calibrated, *measured]) == list(used)
    assert len(measured) == held_back


def test_something_must_be_left_to_calibrate_on():
    with pytest.raises(BadData, match="5 of 5 samples cannot be held back"):
        places_to_calibrate(10, 5, 5, "data.npz")
    assert places_to_calibrate(0, None, 0, "data.npz") == []
