"""Samples set aside: how many, which, and that nothing is in both parts."""

import numpy as np
import pytest

from mrt.calibrate.held_back import count_to_hold_back, split
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
