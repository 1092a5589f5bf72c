"""Moments are those that numpy computes of all rows at once, exactly for integers."""

import numpy as np

from mrt.refine.moments import BLOCK, Moments, Rows


def test_moments_are_those_of_all_rows_however_many_came_at_once():
    rng = np.random.default_rng(5)
    rows = rng.normal(3, 2, (2, 3 * BLOCK, 4)).astype(np.float32)
    moments, start = Moments(), 0
    for count in (7, BLOCK - 8, 1, 30, BLOCK + 9, 2 * BLOCK):
        moments.add(Rows(rows[:, start : start + count], 20.0))
        start += count
    for group in range(2):
        exact = rows[group].astype(np.float64)
        assert np.allclose(moments.means[group], exact.mean(axis=0))
        assert np.allclose(
            moments.covariance[group],
            np.cov(exact.T, bias=True),
            rtol=1e-4,
            atol=1e-4,
        )


def test_products_of_bytes_are_added_exactly():
    numbers = np.full((1, 100, 1), 255, np.float32)
    numbers[:, 50:] = 253
    rows = Rows(numbers, 255.0)
    moments = Moments()
    for _ in range(99):
        moments.add(rows)
    assert moments.covariance.tolist() == [[[1.0]]]


def test_a_small_variance_far_from_zero_survives_integers_of_16_bits():
    """30000 and 30001 in turn have a variance of 1/4; their squares are near 2**30."""
    numbers = np.full((1, BLOCK, 3), 30000, np.float32)
    numbers[:, ::2, 0] = 30001
    numbers[:, ::2, 1] = 29999
    rows = Rows(numbers, 30001.0)
    moments = Moments()
    for _ in range(40):
        moments.add(rows)
    assert moments.means.tolist() == [[30000.5, 29999.5, 30000.0]]
    expected = [[0.25, -0.25, 0.0], [-0.25, 0.25, 0.0], [0.0, 0.0, 0.0]]
    assert np.allclose(moments.covariance, expected, rtol=0, atol=1e-6)
