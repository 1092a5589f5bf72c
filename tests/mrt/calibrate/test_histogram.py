"""Histograms of doubling bins: where values fall, and that shares merge into exactly the whole."""

import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from mrt.calibrate.histogram import CENTRE, Histogram, exponent_for

FLOATS = hnp.arrays(
    np.float32,
    st.integers(1, 40),
    elements=st.floats(width=32, allow_nan=False, allow_infinity=False),
)


def histogram_of(*arrays: np.ndarray) -> Histogram:
    result = Histogram()
    for values in arrays:
        result.add(values, float(np.abs(values).max()))
    return result


def bins(histogram: Histogram) -> dict[int, int]:
    return {
        int(index) - CENTRE: int(histogram.counts[index])
        for index in np.flatnonzero(histogram.counts)
    }


@pytest.mark.parametrize(
    ("magnitude", "exponent"),
    [(1.0, -11), (0.999, -12), (4096.0, 1), (4095.9, 0), (0.0, -140)],
)
def test_the_largest_magnitude_lies_in_the_outer_half(
    magnitude: float, exponent: int
) -> None:
    assert exponent_for(magnitude) == exponent


def test_values_fall_toward_zero_into_bins_of_the_width() -> None:
    histogram = histogram_of(
        np.array(
            [4000.0, 2.5, 2.0, -2.5, -0.5, 0.0, 0.99, -4000.75], np.float32
        )
    )
    assert histogram.width == 1.0
    assert bins(histogram) == {4000: 1, 2: 2, -2: 1, 0: 3, -4000: 1}


def test_a_larger_value_doubles_the_width_and_keeps_the_counts() -> None:
    histogram = histogram_of(
        np.array([4095.0, 3.0, -3.0], np.float32),
        np.array([10000.0], np.float32),
    )
    assert histogram.width == 4.0
    assert bins(histogram) == {1023: 1, 0: 2, 2500: 1}


def test_zeros_alone_need_no_width() -> None:
    assert bins(histogram_of(np.zeros(5, np.float32))) == {0: 5}


@pytest.mark.parametrize(
    ("dtype", "outermost"),
    [(np.float16, 4094), (np.float32, 4095), (np.float64, 4095)],
)
def test_extreme_magnitudes_are_counted(dtype: type, outermost: int) -> None:
    limits = np.finfo(dtype)
    histogram = histogram_of(
        np.array(
            [limits.smallest_subnormal, limits.max, limits.min, limits.tiny],
            dtype,
        )
    )
    assert bins(histogram) == {outermost: 1, -outermost: 1, 0: 2}


@settings(max_examples=150)
@given(FLOATS, FLOATS, FLOATS)
def test_shares_merged_in_any_way_equal_the_whole(
    a: np.ndarray, b: np.ndarray, c: np.ndarray
) -> None:
    whole = histogram_of(np.concatenate([a, b, c]))
    left = histogram_of(a, b)
    left.merge(histogram_of(c))
    right = histogram_of(c)
    right.merge(histogram_of(b))
    right.merge(histogram_of(a))
    for merged in (left, right, histogram_of(c, a, b)):
        assert merged.exponent == whole.exponent
        assert np.array_equal(merged.counts, whole.counts)
    assert whole.counts.sum() == a.size + b.size + c.size


@pytest.mark.parametrize("most", [0, 3, 8, 1024])
def test_numbers_that_wait_are_counted_as_any_others(
    monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    rng = np.random.default_rng(3)
    shares = [
        (rng.normal(size=4) * scale).astype(np.float32)
        for scale in (1e-30, 0.01, 7.0, 1.0)
    ]
    monkeypatch.setattr("mrt.calibrate.histogram.MOST_WAITING", 0)
    expected = histogram_of(*shares)
    monkeypatch.setattr("mrt.calibrate.histogram.MOST_WAITING", most)
    found = histogram_of(*shares)
    assert found.exponent == expected.exponent
    assert np.array_equal(found.counts, expected.counts)
    found.merge(expected)
    assert np.array_equal(found.counts, 2 * expected.counts)


def test_small_values_take_little_memory() -> None:
    """Ten thousand of them took 64 KiB each."""
    tracemalloc.start()
    several = [histogram_of(np.ones(10, np.float32)) for _ in range(1000)]
    taken, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert sum(item.counts.sum() for item in several) == 10_000
    assert taken < 2_000_000


def test_an_array_that_waits_is_not_that_of_the_caller() -> None:
    values = np.ones(4, np.float32)
    histogram = histogram_of(values)
    values[:] = 0
    assert sum(bins(histogram).values()) == 4 and 0 not in bins(histogram)


class Sized(np.ndarray):
    """An array that counts how often it is asked for its size."""

    asked = 0

    @property
    def size(self) -> int:
        Sized.asked += 1
        return 1


def test_numbers_that_wait_are_not_counted_again_for_every_further_one() -> (
    None
):
    """A model of thousands of single numbers has as many histograms."""
    histogram = Histogram()
    for _ in range(500):
        histogram.add(np.ones(1, np.float32).view(Sized), 1.0)
    assert 0 < Sized.asked <= 2 * 500
