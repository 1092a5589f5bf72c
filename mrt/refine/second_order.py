"""Weights rounded one after another, the error of each taken up by those still to come (GPTQ, arXiv 2210.17323)."""

from __future__ import annotations

import numpy as np

from cvm.program import IntArray
from mrt.quantize.fixed_point import FloatArray
from mrt.refine.moments import damp

DAMPING = 0.03  # of the mean of the diagonal, so that the matrix can be inverted
FACTORS = (1.0, 0.99, 1.01, 1.02, 1.03, 1.04, 1.05, 1.06, 1.08, 1.1, 1.12, 1.15)  # of a scale, that are tried
LONGEST = 64  # weights of an output; of more it hardly depends on the scale how well they fit
TOGETHER = 2**20  # weights, at all scales that are tried at once
BLOCK = 16  # weights after whose rounding the error is handed on to all that are left


def round_to_second_order(weights: FloatArray, scales: FloatArray, covariance: FloatArray, bits: int) -> IntArray:
    """Integers for weights [O,..,C/groups] at scales [O], for inputs with this covariance [groups,K,K]."""
    groups, length = covariance.shape[:2]
    steps = (weights.reshape(len(weights), -1) / scales[:, None]).reshape(groups, -1, length)
    return _integers(_Rounding(covariance).rounded(steps, bits), weights.shape, bits)


def round_at_best_scales(
    weights: FloatArray, scales: FloatArray, covariance: FloatArray, bits: int
) -> tuple[IntArray, FloatArray]:
    """As `round_to_second_order`, with each output at that of a few scales at which its weights happen to fit best: also [O]."""
    groups, length = covariance.shape[:2]
    if length > LONGEST:
        return round_to_second_order(weights, scales, covariance, bits), scales
    rounding, real = _Rounding(covariance), weights.reshape(groups, -1, 1, length)
    best, chosen = np.zeros(real.shape), scales.reshape(groups, -1, 1)
    least = np.full(chosen.shape, np.inf)
    together = max(1, TOGETHER // weights.size)
    for start in range(0, len(FACTORS), together):
        tried = scales.reshape(groups, -1, 1) * np.array(FACTORS[start : start + together])
        found = rounding.rounded((real / tried[..., None]).reshape(groups, -1, length), bits)
        errors = (found.reshape(*tried.shape, length) * tried[..., None] - real).reshape(found.shape)
        noise = (np.matmul(errors, covariance) * errors).sum(axis=2).reshape(tried.shape)
        first = noise.argmin(axis=2, keepdims=True)
        better = np.take_along_axis(noise, first, axis=2) < least
        least = np.where(better, np.take_along_axis(noise, first, axis=2), least)
        chosen = np.where(better, np.take_along_axis(tried, first, axis=2), chosen)
        found = np.take_along_axis(found.reshape(*tried.shape, length), first[..., None], axis=2)
        best = np.where(better[..., None], found, best)
    return _integers(best, weights.shape, bits), chosen.reshape(-1)


def _integers(rounded: FloatArray, shape: tuple[int, ...], bits: int) -> IntArray:
    return rounded.reshape(shape).astype(np.int8 if bits <= 8 else np.int16)


class _Rounding:
    """For inputs with this covariance [groups,K,K]."""

    def __init__(self, covariance: FloatArray) -> None:
        diagonal = np.einsum("gkk->gk", covariance)
        # What is met most is rounded first, while others can make up for it.
        self._order = np.argsort(-diagonal, axis=1, kind="stable")
        self._factors = _factors(covariance, self._order)

    def rounded(self, steps: FloatArray, bits: int) -> FloatArray:
        """Whole numbers for weights [groups,n,K] in steps; each of the n for itself."""
        left = np.take_along_axis(steps, self._order[:, None, :], axis=2).transpose(0, 2, 1)
        rounded = _round(np.ascontiguousarray(left), self._factors, 2 ** (bits - 1) - 1).transpose(0, 2, 1)
        result = np.empty_like(steps)
        np.put_along_axis(result, np.broadcast_to(self._order[:, None, :], rounded.shape), rounded, axis=2)
        return result


def _factors(covariance: FloatArray, order: IntArray) -> FloatArray:
    """[groups,K,K]: how much of the error of a weight, a row, each later one, a column, best makes up for; in this order.

    Each damped matrix is R times R transposed with R upper, so the squared error is the sum of (errors times R)^2, column by
    column: what is left of a column is 0 if its weight takes up R[j,i] / R[i,i] of each error j before it.
    """
    turned = order[:, ::-1]
    matrices = np.take_along_axis(
        np.take_along_axis(covariance, turned[:, :, None], axis=1), turned[:, None, :], axis=2
    )
    upper = np.linalg.cholesky(damp(matrices, DAMPING))[:, ::-1, ::-1]
    return np.asarray(upper / np.einsum("gkk->gk", upper)[:, None, :])


def _round(real: FloatArray, factors: FloatArray, most: int) -> FloatArray:
    """[groups, K, O]; the errors of a block are handed on within it at once, and beyond it in one product."""
    length, left = real.shape[1], real.copy()
    rounded = np.empty_like(left)
    for start in range(0, length, BLOCK):
        stop = min(start + BLOCK, length)
        errors = np.empty((len(left), stop - start, left.shape[2]))
        for index in range(start, stop):
            whole, error = rounded[:, index], errors[:, index - start]
            np.floor(np.add(left[:, index], 0.5, out=whole), out=whole)
            np.minimum(np.maximum(whole, -most, out=whole), most, out=whole)  # what np.clip does, in half the time
            np.subtract(real[:, index], whole, out=error)
            left[:, index + 1 : stop] += factors[:, index, index + 1 : stop, None] * error[:, None, :]
        left[:, stop:] += np.matmul(factors[:, start:stop, stop:].transpose(0, 2, 1), errors)
    return rounded
