"""Weights rounded one after another, the error of each taken up by those still to come (GPTQ, arXiv 2210.17323)."""

from __future__ import annotations

import numpy as np

from cvm.program import IntArray
from mrt.quantize.fixed_point import FloatArray

DAMPING = 0.01  # of the mean of the diagonal, so that the matrix can be inverted
FACTORS = (1.0, 0.99, 1.01, 1.02, 1.03, 1.04, 1.05, 1.06, 1.08, 1.1, 1.12, 1.15)  # of a scale, that are tried
LONGEST = 256  # weights of an output; of more it hardly depends on the scale how well they fit
BLOCK = 64  # weights after whose rounding the error is handed on to all that are left


def round_to_second_order(weights: FloatArray, scales: FloatArray, covariance: FloatArray, bits: int) -> IntArray:
    """Integers for weights [O,..,C/groups] at scales [O], for inputs with this covariance [groups,K,K]."""
    groups, length = covariance.shape[:2]
    steps = (weights.reshape(len(weights), -1) / scales[:, None]).reshape(groups, -1, length)
    most = 2 ** (bits - 1) - 1
    diagonal = np.einsum("gkk->gk", covariance)
    order = np.argsort(
        -diagonal, axis=1, kind="stable"
    )  # what is met most is rounded first, while others can make up for it
    left = np.take_along_axis(steps, order[:, None, :], axis=2).transpose(0, 2, 1)
    rounded = _round(np.ascontiguousarray(left), _factors(covariance, order), most).transpose(0, 2, 1)
    result = np.empty_like(steps)
    np.put_along_axis(result, np.broadcast_to(order[:, None, :], rounded.shape), rounded, axis=2)
    return result.reshape(weights.shape).astype(np.int8 if bits <= 8 else np.int16)


def round_at_best_scales(
    weights: FloatArray, scales: FloatArray, covariance: FloatArray, bits: int
) -> tuple[IntArray, FloatArray]:
    """As `round_to_second_order`, with each output at that of a few scales at which its weights happen to fit best: also [O]."""
    groups, length = covariance.shape[:2]
    real = weights.reshape(groups, -1, length)
    best, chosen = round_to_second_order(weights, scales, covariance, bits), scales
    least = np.full(len(scales), np.inf)
    for factor in FACTORS if length <= LONGEST else ():
        tried = scales * factor
        found = round_to_second_order(weights, tried, covariance, bits)
        errors = found.reshape(real.shape) * tried.reshape(groups, -1, 1) - real
        noise = (np.matmul(errors, covariance) * errors).sum(axis=2).reshape(-1)
        better = noise < least
        least, chosen = np.where(better, noise, least), np.where(better, tried, chosen)
        best = np.where(better.reshape(-1, *[1] * (weights.ndim - 1)), found, best)
    return best, chosen


def _factors(covariance: FloatArray, order: IntArray) -> FloatArray:
    """The upper Cholesky factor of the inverse of each damped matrix, rows and columns in this order.

    It is the inverse of R, upper as well, where the matrix is R times R transposed: the lower factor, all turned round.
    """
    length = covariance.shape[1]
    turned = order[:, ::-1]
    damped = np.take_along_axis(np.take_along_axis(covariance, turned[:, :, None], axis=1), turned[:, None, :], axis=2)
    means = np.trace(damped, axis1=1, axis2=2) / length
    diagonal = np.arange(length)
    damped[:, diagonal, diagonal] += (DAMPING * means + np.where(means > 0, 0.0, 1.0))[:, None]
    return _inverse(np.linalg.cholesky(damped)[:, ::-1, ::-1].astype(np.float64, copy=False))


def _inverse(upper: FloatArray) -> FloatArray:
    """Of triangular matrices: by halves, so that most of the work is in products."""
    length = upper.shape[1]
    if length <= BLOCK:
        return np.linalg.inv(upper).astype(np.float64, copy=False)
    half = length // 2
    inverse = np.zeros(upper.shape)
    inverse[:, :half, :half] = _inverse(upper[:, :half, :half])
    inverse[:, half:, half:] = _inverse(upper[:, half:, half:])
    inverse[:, :half, half:] = -inverse[:, :half, :half] @ upper[:, :half, half:] @ inverse[:, half:, half:]
    return inverse


def _round(left: FloatArray, factors: FloatArray, most: int) -> FloatArray:
    """[groups, K, O]; the errors of a block are handed on within it at once, and beyond it in one product."""
    length = left.shape[1]
    rounded = np.empty_like(left)
    for start in range(0, length, BLOCK):
        stop = min(start + BLOCK, length)
        errors = np.empty((len(left), stop - start, left.shape[2]))
        for index in range(start, stop):
            rounded[:, index] = np.clip(np.floor(left[:, index] + 0.5), -most, most)
            error = (left[:, index] - rounded[:, index]) / factors[:, index, index, None]
            left[:, index:stop] -= factors[:, index, index:stop, None] * error[:, None, :]
            errors[:, index - start] = error
        left[:, stop:] -= np.matmul(factors[:, start:stop, stop:].transpose(0, 2, 1), errors)
    return rounded
