"""Moments: what numpy says of all rows at once, and exactly so for whole numbers."""

import numpy as np

from mrt.refine.moments import BLOCK, Moments


def test_moments_are_those_of_all_rows_however_many_came_at_once():
    rng = np.random.default_rng(5)
    x = rng.normal(3, 2, (2, 3 * BLOCK, 4)).astype(np.float32)
    y = (x[:, :, :3] * 0.5 + rng.normal(size=(2, 3 * BLOCK, 3))).astype(np.float32)
    moments, start = Moments(), 0
    for count in (7, BLOCK - 8, 1, 30, BLOCK + 9, 2 * BLOCK):
        moments.add(x[:, start : start + count], y[:, start : start + count])
        start += count
    for group in range(2):
        whole = np.cov(x[group].T.astype(np.float64), y[group].T.astype(np.float64), bias=True)
        assert np.allclose(moments.covariance[group], whole[:4, :4], rtol=1e-4, atol=1e-4)
        assert np.allclose(moments.cross[group], whole[:4, 4:], rtol=1e-4, atol=1e-4)


def test_products_of_bytes_are_added_exactly():
    x = np.full((1, 100, 1), 255, np.float32)
    x[:, 50:] = 253
    moments = Moments()
    for _ in range(99):
        moments.add(x, x)
    assert moments.covariance.tolist() == [[[1.0]]]
