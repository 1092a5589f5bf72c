import numpy as np
import pytest

from mrt.calibrate.seen import Seen


@pytest.mark.parametrize("shape", [(1, 3, 2, 5), (2, 3, 4), (1, 4), (2, 5, 1, 1)])
def test_ends_are_those_of_each_channel(shape) -> None:
    values = np.random.default_rng(2).standard_normal(shape).astype(np.float32)
    found = Seen(values, values)
    by_channel = [values[:, index] for index in range(shape[1])]
    assert [end.tolist() for end in found.ends] == [
        [item.min() for item in by_channel],
        [item.max() for item in by_channel],
    ]
    assert found.range == (values.min(), values.max())


@pytest.mark.parametrize("shape", [(), (6,), (3, 2), (2, 1, 4)])
def test_the_range_is_that_of_all_numbers(shape) -> None:
    values = np.random.default_rng(3).standard_normal(shape).astype(np.float32).reshape(shape)
    assert Seen(values, values).range == (values.min(), values.max())


@pytest.mark.parametrize("shape", [(1, 3, 2, 5), (3, 5)])
def test_a_nan_among_many_numbers_is_in_the_range(shape) -> None:
    values = np.zeros(shape, np.float32)
    values[0, 1] = np.nan
    assert np.isnan(Seen(values, values).range).all()


def test_sums_and_squares_are_of_few_numbers() -> None:
    values = np.arange(12, dtype=np.float32).reshape(1, 2, 3, 2)
    seen = Seen(values, values[:, :, 1:2])
    assert seen.sums.tolist() == [5, 17]  # 2 + 3, 8 + 9
    assert seen.squares.tolist() == [13, 145]
