import math

import numpy as np
import pytest

from mrt.calibrate.observed_tensor import ClippedTensor, ObservedTensor


@pytest.mark.parametrize(
    "shape", [(1, 3, 2, 5), (2, 3, 4), (1, 4), (2, 5, 1, 1)]
)
def test_ends_are_those_of_each_channel(shape) -> None:
    values = np.random.default_rng(2).standard_normal(shape).astype(np.float32)
    found = ObservedTensor(values, values)
    by_channel = [values[:, index] for index in range(shape[1])]
    assert [end.tolist() for end in found.extremes] == [
        [item.min() for item in by_channel],
        [item.max() for item in by_channel],
    ]
    assert found.range == (values.min(), values.max())


@pytest.mark.parametrize("shape", [(), (6,), (3, 2), (2, 1, 4)])
def test_the_range_is_that_of_all_numbers(shape) -> None:
    values = (
        np.random.default_rng(3)
        .standard_normal(shape)
        .astype(np.float32)
        .reshape(shape)
    )
    assert ObservedTensor(values, values).range == (values.min(), values.max())


@pytest.mark.parametrize("shape", [(1, 3, 2, 5), (3, 5)])
def test_a_nan_among_many_numbers_is_in_the_range(shape) -> None:
    values = np.zeros(shape, np.float32)
    values[0, 1] = np.nan
    assert np.isnan(ObservedTensor(values, values).range).all()


def test_sums_and_squares_are_of_few_numbers() -> None:
    values = np.arange(12, dtype=np.float32).reshape(1, 2, 3, 2)
    seen = ObservedTensor(values, values[:, :, 1:2])
    assert seen.sums.tolist() == [5, 17]  # 2 + 3, 8 + 9
    assert seen.squares.tolist() == [13, 145]


@pytest.mark.parametrize("shape", [(1, 3, 4, 5), (2, 6), (3,)])
@pytest.mark.parametrize(
    ("low", "high"),
    [(0.0, math.inf), (-0.25, 0.5), (-math.inf, -0.1), (9.0, 10.0)],
)
def test_what_a_clip_gives_is_as_if_it_were_seen_itself(
    shape, low, high
) -> None:
    values = np.random.default_rng(4).standard_normal(shape).astype(np.float32)
    subsample = values[:, :, 1::2] if values.ndim == 4 else values
    found = ClippedTensor(ObservedTensor(values, subsample), low, high)
    expected = ObservedTensor(
        np.clip(values, np.float32(low), np.float32(high)),
        np.clip(subsample, np.float32(low), np.float32(high)),
    )
    assert np.array_equal(found.values, expected.values)
    assert np.array_equal(found.subsample, expected.subsample)
    assert found.range == expected.range
    if values.ndim > 1:
        assert np.array_equal(found.extremes, expected.extremes)
        assert np.array_equal(found.squares, expected.squares)


def test_no_end_of_what_a_clip_gives_is_a_negative_zero() -> None:
    values = np.full((1, 2, 1, 1), -3, np.float32)
    found = ClippedTensor(ObservedTensor(values, values), -math.inf, -0.0)
    assert not np.signbit(
        ClippedTensor(
            ObservedTensor(-values, -values), -math.inf, -0.0
        ).extremes
    ).any()
    assert found.range == (-3, -3)


def test_a_nan_is_no_number_behind_a_clip() -> None:
    values = np.array([[[[np.nan]], [[1]]]], np.float32)
    assert np.isnan(
        ClippedTensor(ObservedTensor(values, values), 0.0, math.inf).range
    ).all()
