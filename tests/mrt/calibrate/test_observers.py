"""Observers: ranges of known distributions, degenerate tensors, and merging."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from mrt.calibrate import thresholds
from mrt.calibrate.observers import Observer
from mrt.errors import BadData
from mrt.exact.logarithm import logarithms
from mrt.table.table import OBSERVERS, CalibrationOptions, MeasuredRange

ARRAYS = hnp.arrays(
    np.float32, st.integers(1, 30), elements=st.floats(-1e6, 1e6, width=32)
)


def observe(name: str, *arrays: np.ndarray, **options) -> Observer:
    observer = Observer(CalibrationOptions(name, **options))
    for values in arrays:
        observer.update(np.asarray(values, np.float32))
    return observer


def with_outlier(values: np.ndarray, outlier: float) -> np.ndarray:
    return np.append(values, outlier).astype(np.float32)


def test_minmax_is_what_was_seen() -> None:
    assert observe("minmax", [1, -2], [3, 0.5]).range() == MeasuredRange(
        -2.0, 3.0, -2.0, 3.0
    )


@pytest.mark.parametrize("name", OBSERVERS)
@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([0, 0, 0], MeasuredRange(0.0, 0.0, 0.0, 0.0)),
        ([-0.0], MeasuredRange(0.0, 0.0, 0.0, 0.0)),
        ([5, 5], MeasuredRange(5.0, 5.0, 5.0, 5.0)),
        ([-5, -5], MeasuredRange(-5.0, -5.0, -5.0, -5.0)),
        ([], MeasuredRange(0.0, 0.0, 0.0, 0.0)),
        (
            [1e-45],
            MeasuredRange(
                1.401298464324817e-45,
                1.401298464324817e-45,
                1.401298464324817e-45,
                1.401298464324817e-45,
            ),
        ),
    ],
)
def test_tensors_with_one_value_have_the_range_of_that_value(
    name: str, values: list[float], expected: MeasuredRange
) -> None:
    assert observe(name, values).range() == expected


def test_the_sign_of_zero_leaves_no_trace() -> None:
    assert (
        str(observe("minmax", [-0.0, 1]).range())
        == "MeasuredRange(min=0.0, max=1.0, lo=0.0, hi=1.0)"
    )


def test_percentile_leaves_out_the_share_on_either_side() -> None:
    values = np.arange(-500, 500) + 0.5  # 1000 values; bins are 1/8 wide
    assert observe(
        "percentile", values, percentile=99
    ).range() == MeasuredRange(-499.5, 499.5, -489.625, 489.625)
    assert observe(
        "percentile", values, percentile=100
    ).range() == MeasuredRange(-499.5, 499.5, -499.5, 499.5)


def test_percentile_of_few_values_clips_nothing() -> None:
    assert observe("percentile", [0, 1, 100]).range() == MeasuredRange(
        0.0, 100.0, 0.0, 100.0
    )


def test_percentile_of_positive_values_clips_both_ends() -> None:
    assert observe(
        "percentile", np.arange(1024, 2024), percentile=90
    ).range() == MeasuredRange(1024.0, 2023.0, 1124.0, 1923.5)


def test_mse_weighs_clipping_against_rounding() -> None:
    """Among 200,000 small values, one of 50: (50 - t)^2 + 200000 (t / 127)^2 / 12 is least at t = 24.6."""
    small = np.random.Generator(np.random.PCG64(1)).standard_normal(200_000)
    assert 23.5 < observe("mse", with_outlier(small, 50.0)).range().hi < 25.7


def test_of_values_that_are_only_summed_clipping_counts_as_often_as_there_are_terms() -> (
    None
):
    """As above, but 10 (50 - t)^2 + 200000 (t / 127)^2 / 12, which is least at t = 45.3."""
    small = np.random.Generator(np.random.PCG64(1)).standard_normal(200_000)
    observer = Observer(CalibrationOptions("mse"), summed=10)
    observer.update(with_outlier(small, 50.0))
    assert 44.2 < observer.range().hi < 46.4


def test_values_that_are_never_negative_have_twice_the_steps() -> None:
    """As above with 255 steps: (50 - t)^2 + 200000 (t / 255)^2 / 12 is least at t = 39.8."""
    small = np.abs(
        np.random.Generator(np.random.PCG64(1)).standard_normal(200_000)
    )
    assert 38.7 < observe("mse", with_outlier(small, 50.0)).range().hi < 40.9


def test_zeros_weigh_nothing_in_entropy() -> None:
    positive = np.abs(
        np.random.Generator(np.random.PCG64(1)).standard_normal(20_000)
    )
    assert (
        observe("entropy", positive, np.zeros(10**6)).range().hi
        == observe("entropy", positive, [0]).range().hi
    )


def test_the_information_lost_has_the_same_bits_on_every_machine() -> None:
    """It is added from left to right; numpy's order depends on the processor, its log too."""
    counts = np.random.Generator(np.random.PCG64(3)).integers(1, 1000, 4096)
    magnitudes = counts.astype(np.float64)
    lost = thresholds._divergence(magnitudes, 4096, 2048)
    spread = magnitudes.reshape(2048, 2).sum(axis=1).repeat(2) / 2
    ratios = magnitudes / magnitudes.sum() / (spread / magnitudes.sum())
    terms = magnitudes / magnitudes.sum() * logarithms(ratios)
    from_left_to_right = 0.0
    for term in terms.tolist():
        from_left_to_right += term
    assert lost == from_left_to_right


@pytest.mark.parametrize(
    ("name", "bits"), [("mse", 4), ("entropy", 4), ("entropy", 8)]
)
def test_one_far_outlier_among_many_values_is_clipped(
    name: str, bits: int
) -> None:
    normal = np.random.Generator(np.random.PCG64(1)).standard_normal(200_000)
    signed = observe(name, with_outlier(normal, 50.0), bits=bits).range()
    assert signed.max == 50.0
    assert 2 < signed.hi < 8
    assert -8 < signed.lo < -2
    positive = observe(
        name, with_outlier(np.abs(normal), 50.0), bits=bits
    ).range()
    assert positive.lo == positive.min >= 0
    assert 2 < positive.hi < 8


@pytest.mark.parametrize("name", ["mse", "entropy"])
def test_values_spread_evenly_are_hardly_clipped(name: str) -> None:
    found = observe(name, np.linspace(-1, 1, 100_001)).range()
    assert found.hi > 0.95
    assert found.lo < -0.95


def test_mse_clips_more_with_fewer_bits() -> None:
    normal = np.random.Generator(np.random.PCG64(2)).standard_normal(100_000)
    limits = [
        observe("mse", normal, bits=bits).range().hi for bits in (2, 4, 8)
    ]
    assert limits[0] < limits[1] < limits[2]
    assert (
        2.4 < limits[1] < 2.8
    )  # literature: 4 bits of a normal distribution are best clipped near 2.55


@pytest.mark.parametrize("name", ["mse", "entropy"])
def test_sixteen_bits_clip_nothing(name: str) -> None:
    found = observe(name, [-3, 1, 2], bits=16).range()
    assert (found.lo, found.hi) == (-3.0, 2.0)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_values_that_are_not_finite_are_refused(bad: float) -> None:
    with pytest.raises(BadData, match="NaN or infinity"):
        observe("minmax", [1, bad])


@pytest.mark.parametrize("name", OBSERVERS)
@settings(max_examples=12, deadline=None)
@given(ARRAYS, ARRAYS)
def test_two_halves_merged_equal_the_whole(
    name: str, a: np.ndarray, b: np.ndarray
) -> None:
    merged = observe(name, a)
    merged.merge(observe(name, b))
    assert merged.range() == observe(name, np.concatenate([b, a])).range()


@pytest.mark.parametrize("name", OBSERVERS)
@settings(max_examples=12, deadline=None)
@given(ARRAYS)
def test_a_range_lies_within_what_was_seen(
    name: str, values: np.ndarray
) -> None:
    found = observe(name, values).range()
    assert (found.min, found.max) == (
        float(values.min()) + 0.0,
        float(values.max()) + 0.0,
    )
    assert found.min <= found.lo <= found.hi <= found.max


def test_observers_of_different_options_do_not_merge() -> None:
    with pytest.raises(ValueError, match="do not merge"):
        observe("mse", [1], bits=8).merge(observe("mse", [1], bits=4))
