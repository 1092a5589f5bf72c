"""Confidence intervals against published values."""

import pytest

from mrt.evaluate.interval import samples_to_tell, wilson_interval


@pytest.mark.parametrize(
    ("share", "count", "low", "high"),
    [
        # Newcombe, Statistics in Medicine 17 (1998), Table I, method 3 (score, without continuity correction)
        (81 / 263, 263, 0.2553, 0.3662),
        (15 / 148, 148, 0.0624, 0.1605),
        (0 / 20, 20, 0.0000, 0.1611),
        (1 / 29, 29, 0.0061, 0.1718),
    ],
)
def test_the_interval_is_the_published_one(share, count, low, high):
    assert wilson_interval(share, count) == pytest.approx((low, high), abs=5e-5)


@pytest.mark.parametrize(
    ("share", "count"), [(0.99, 100), (0.98, 50), (0.5, 2), (0.995, 200)]
)
def test_the_samples_that_can_tell_a_share(share, count):
    # with one fewer, a single miss already falls short of the share
    assert samples_to_tell(share) == count
    assert 1 - 1 / count >= share - 1e-12
    assert 1 - 1 / (count - 1) < share
