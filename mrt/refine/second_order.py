"""Weights rounded one after another, the error of each taken up by those still to come (GPTQ, arXiv 2210.17323)."""

from __future__ import annotations

import numpy as np

from cvm.program import IntArray
from mrt.exact.fixed_point import FloatArray
from mrt.refine.moments import damp

DAMPING = 0.03  # of the mean of the diagonal, so that the matrix can be inverted
FACTORS = (
    1.0,
    0.99,
    1.01,
    1.02,
    1.03,
    1.04,
    1.05,
    1.06,
    1.08,
    1.1,
    1.12,
    1.15,
)  # of a scale, that are tried
LONGEST = (
    64  # weights of an output; of more it hardly depends on the scale how well they fit
)
TOGETHER = 2**20  # weights, at all scales that are tried at once
BLOCK = 8  # weights, at most, whose errors are handed on one by one


def round_to_second_order(
    weights: FloatArray, scales: FloatArray, covariance: FloatArray, bits: int
) -> IntArray:
    """Integers for weights [O,..,C/groups] at scales [O], for inputs with this covariance [groups,K,K]."""
    rounding = _Rounding(covariance)
    steps = rounding.columns(weights) / scales.reshape(len(covariance), 1, -1)
    return rounding.integers(
        _round(steps, rounding.factors, _most(bits)), weights.shape, bits
    )


def round_at_best_scales(
    weights: FloatArray, scales: FloatArray, covariance: FloatArray, bits: int
) -> tuple[IntArray, FloatArray]:
    """As `round_to_second_order`, with each output at that of a few scales at which its weights happen to fit best: also [O]."""
    groups, length = covariance.shape[:2]
    if length > LONGEST:
        return round_to_second_order(weights, scales, covariance, bits), scales
    rounding, plain = _Rounding(covariance), scales.reshape(groups, 1, -1)
    real = rounding.columns(weights)
    best, chosen, least = np.zeros_like(real), plain, np.full(plain.shape, np.inf)
    together = max(1, TOGETHER // weights.size)
    for start in range(0, len(FACTORS), together):
        factors = np.array(FACTORS[start : start + together])
        tried = (factors[:, None] * plain).reshape(
            groups, 1, -1
        )  # all outputs at the first, all at the second, ...
        found = _round(
            np.tile(real, len(factors)) / tried, rounding.factors, _most(bits)
        )
        errors = found * tried - np.tile(real, len(factors))
        noise = (
            (np.matmul(rounding.covariance, errors) * errors)
            .sum(axis=1)
            .reshape(groups, len(factors), -1)
        )
        first = noise.argmin(axis=1)[:, None]
        places = first * plain.shape[2] + np.arange(plain.shape[2])
        better = np.take_along_axis(noise, first, axis=1) < least
        least = np.where(better, np.take_along_axis(noise, first, axis=1), least)
        chosen = np.where(better, np.take_along_axis(tried, places, axis=2), chosen)
        best = np.where(better, np.take_along_axis(found, places, axis=2), best)
    return rounding.integers(best, weights.shape, bits), chosen.reshape(-1)


def _most(bits: int) -> int:
    return int(2 ** (bits - 1)) - 1


class _Rounding:
    """For inputs with this covariance [groups,K,K]: weights as columns, in the order in which they are rounded.

    What is met most is rounded first, while others can make up for it.
    """

    def __init__(self, covariance: FloatArray) -> None:
        self._order = np.argsort(
            -np.einsum("gkk->gk", covariance), axis=1, kind="stable"
        )
        rows = np.take_along_axis(covariance, self._order[:, :, None], axis=1)
        self.covariance = np.take_along_axis(rows, self._order[:, None, :], axis=2)
        self.factors = _factors(self.covariance)

    def columns(self, weights: FloatArray) -> FloatArray:
        """[groups,K,O/groups] of weights [O,..,C/groups]."""
        groups, length = self._order.shape
        columns = weights.reshape(groups, -1, length).transpose(0, 2, 1)
        return np.take_along_axis(columns, self._order[:, :, None], axis=1)

    def integers(
        self, columns: FloatArray, shape: tuple[int, ...], bits: int
    ) -> IntArray:
        """Weights of this shape again."""
        weights = np.empty_like(columns)
        np.put_along_axis(weights, self._order[:, :, None], columns, axis=1)
        narrow = weights.transpose(0, 2, 1).astype(
            np.int8 if bits <= 8 else np.int16, order="C"
        )
        return narrow.reshape(shape)


def _factors(covariance: FloatArray) -> FloatArray:
    """[groups,K,K]: how much of the error of a weight, a row, each later one, a column, best makes up for.

    Each damped matrix is R times R transposed with R upper, so the squared error is the sum of (errors times R)^2, column by
    column: what is left of a column is 0 if its weight takes up R[j,i] / R[i,i] of each error j before it.
    """
    turned = np.array(covariance[:, ::-1, ::-1])
    upper = np.linalg.cholesky(damp(turned, DAMPING))[:, ::-1, ::-1]
    return np.asarray(upper / np.einsum("gkk->gk", upper)[:, None, :])


def _round(real: FloatArray, factors: FloatArray, most: int) -> FloatArray:
    """[groups, K, O]: each after those before it."""
    left, rounded, errors = real.copy(), np.empty_like(real), np.empty_like(real)

    def round_some(start: int, stop: int) -> None:
        """Halves, so that the errors of many are handed on to many in one product."""
        if stop - start <= BLOCK:
            return round_each(start, stop)
        middle = (start + stop) // 2
        round_some(start, middle)
        handed_on = factors[:, start:middle, middle:stop].transpose(0, 2, 1)
        left[:, middle:stop] += np.matmul(handed_on, errors[:, start:middle])
        return round_some(middle, stop)

    def round_each(start: int, stop: int) -> None:
        for index in range(start, stop):
            whole, error = rounded[:, index], errors[:, index]
            np.floor(np.add(left[:, index], 0.5, out=whole), out=whole)
            np.minimum(
                np.maximum(whole, -most, out=whole), most, out=whole
            )  # what np.clip does, in half the time
            np.subtract(real[:, index], whole, out=error)
            left[:, index + 1 : stop] += (
                factors[:, index, index + 1 : stop, None] * error[:, None, :]
            )

    round_some(0, real.shape[1])
    return rounded
