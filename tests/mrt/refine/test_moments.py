"""Moments are those that numpy computes of all rows at once, exactly for integers."""

import numpy as np

from mrt.refine.moments import BLOCK, Moments


def test_moments_are_those_of_all_rows_however_many_came_at_once():
    rng = np.random.default_rng(5)
    rows = rng.normal(3, 2, (2, 3 * BLOCK, 4)).astype(np.float32)
    moments, start = Moments(), 0
    for count in (7, BLOCK - 8, 1, 30, BLOCK + 9, 2 * BLOCK):
        moments.add(rows[:, start : start + count])
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
    rows = np.full((1, 100, 1), 255, np.float32)
    rows[:, 50:] = 253
    moments = Moments()
    for _ in range(99):
        moments.add(rows)
    assert moments.covariance.tolist() == [[[1.0]]]
