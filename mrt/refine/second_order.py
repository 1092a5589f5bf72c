"""Second-order rounding of weights (GPTQ, Frantar et al., arXiv 2210.17323).

Weights are rounded one after another, and later ones take up the error of each.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from cvm.program import IntArray
from mrt import compiled
from mrt.exact.fixed_point import FloatArray
from mrt.refine.moments import damp

# A share of the mean of the diagonal, so that the matrix can be inverted.
DAMPING = 0.03
FACTORS = (1.0, 0.99, 1.01, 1.02, 1.03, 1.04, 1.05, 1.06, 1.08, 1.1, 1.12, 1.15)
"""Factors on a scale that are tried."""

LONGEST = 64
"""The most weights of an output for which scales are tried.

With more weights, the scale hardly affects how well they fit, unless they have FEW_BITS.
"""
FEW_BITS = 4

BATCH = 2**20  # weights, counted at every scale, that are rounded at once
BLOCK = 8  # the most weights whose errors are passed on one by one
STRIP = 256  # the lines of a matrix that are copied at once


def round_to_second_order(
    weights: FloatArray, scales: FloatArray, covariance: FloatArray, bits: int
) -> IntArray:
    """Return integers for weights [O,..,C/groups] at scales [O].

    `covariance` [groups,K,K] is that of the inputs. It is used up: overwritten, since
    that of a long layer is large.
    """
    order = _RoundingOrder(covariance)
    by_group = scales.reshape(len(covariance), 1, -1)
    steps = order.columns(weights) / by_group
    rounded = _round(steps, order.factors, _most(bits))
    return order.integers(rounded, weights.shape, bits)


def round_at_best_scales(
    weights: FloatArray, scales: FloatArray, covariance: FloatArray, bits: int
) -> tuple[IntArray, FloatArray]:
    """Round as `round_to_second_order` does, each output at the best of a few scales.

    Return the integers and these scales. The best is the scale at which the output's
    weights happen to fit best.
    """
    if covariance.shape[1] > LONGEST and bits > FEW_BITS:
        integers = round_to_second_order(weights, scales, covariance, bits)
        return integers, scales
    order = _RoundingOrder(covariance.copy())
    real = order.columns(weights)
    by_group = scales.reshape(len(covariance), 1, -1)
    order.sort(covariance)
    search = _ScaleSearch(order.factors, covariance, real, by_group)
    at_once = max(1, BATCH // weights.size)
    for start in range(0, len(FACTORS), at_once):
        factors = np.array(FACTORS[start : start + at_once])
        search.try_factors(factors, _most(bits))
    integers = order.integers(search.rounded, weights.shape, bits)
    return integers, search.scales.reshape(-1)


def _most(bits: int) -> int:
    return int(2 ** (bits - 1)) - 1


class _RoundingOrder:
    """The order in which weights are rounded, for inputs with this covariance.

    The weights of the inputs with the greatest variance come first, while many others
    remain to take up their errors. `factors` [groups,K,K] are in this order. The
    covariance is overwritten.
    """

    def __init__(self, covariance: FloatArray) -> None:
        variances = np.einsum("gkk->gk", covariance)
        self._order = np.argsort(-variances, axis=1, kind="stable")
        _sort(covariance, self._order[:, ::-1])
        self.factors = _factors(covariance)

    def sort(self, covariance: FloatArray) -> None:
        """Bring a covariance [groups,K,K] into this order, in place."""
        _sort(covariance, self._order)

    def columns(self, weights: FloatArray) -> FloatArray:
        """Return weights [O,..,C/groups] as columns [groups,K,O/groups] in this order."""
        groups, length = self._order.shape
        rows = weights.reshape(groups, -1, length)
        places = self._order[:, :, None]
        return np.take_along_axis(rows.transpose(0, 2, 1), places, axis=1)

    def integers(
        self, columns: FloatArray, shape: tuple[int, ...], bits: int
    ) -> IntArray:
        """Return columns as integer weights of this shape."""
        weights = np.empty_like(columns)
        np.put_along_axis(weights, self._order[:, :, None], columns, axis=1)
        dtype = np.int8 if bits <= 8 else np.int16
        rows = weights.transpose(0, 2, 1).astype(dtype, order="C")
        return rows.reshape(shape)


class _ScaleSearch:
    """The weights `real` [groups,K,O/groups] at the best scales found so far.

    `rounded` are their integers and `scales` [groups,1,O/groups] their scales. `factors`
    and `covariance` are in the order of the weights.
    """

    def __init__(
        self,
        factors: FloatArray,
        covariance: FloatArray,
        real: FloatArray,
        scales: FloatArray,
    ) -> None:
        self.rounded = np.zeros_like(real)
        self.scales = scales
        self._factors, self._covariance = factors, covariance
        self._real = real
        self._plain = scales
        self._least = np.full(scales.shape, np.inf)

    def try_factors(self, factors: FloatArray, most: int) -> None:
        """Round at the plain scales times each factor, and keep the results that are better."""
        groups, _, outputs = self._plain.shape
        # All outputs at the first factor, all at the second, and so on.
        scales = (factors[:, None] * self._plain).reshape(groups, 1, -1)
        real = np.tile(self._real, len(factors))
        rounded = _round(real / scales, self._factors, most)
        noise = self._noise(rounded * scales - real, len(factors))
        first = noise.argmin(axis=1)[:, None]
        least = np.take_along_axis(noise, first, axis=1)
        places = first * outputs + np.arange(outputs)
        better = least < self._least
        self._least = np.where(better, least, self._least)
        self.scales = _where(better, scales, places, self.scales)
        self.rounded = _where(better, rounded, places, self.rounded)

    def _noise(self, errors: FloatArray, factors: int) -> FloatArray:
        """Return the squared error of each output, [groups, factors, O/groups]."""
        squares = np.matmul(self._covariance, errors) * errors
        total = squares.sum(axis=1).reshape(len(errors), factors, -1)
        return np.asarray(total)


def _where(
    better: npt.NDArray[np.bool_],
    candidates: FloatArray,
    places: npt.NDArray[np.int64],
    before: FloatArray,
) -> FloatArray:
    """Return the candidates at these places of the last axis where they are better."""
    chosen = np.take_along_axis(candidates, places, axis=2)
    return np.asarray(np.where(better, chosen, before))


def _sort(matrices: FloatArray, order: npt.NDArray[np.int64]) -> None:
    """Bring the rows and the columns of [groups,K,K] into the order [groups,K], in place."""
    for start in range(0, matrices.shape[1], STRIP):
        columns = matrices[:, :, start : start + STRIP]
        columns[:] = np.take_along_axis(columns, order[:, :, None], axis=1)
    for start in range(0, matrices.shape[1], STRIP):
        rows = matrices[:, start : start + STRIP]
        rows[:] = np.take_along_axis(rows, order[:, None, :], axis=2)


def _factors(flipped: FloatArray) -> FloatArray:
    """Return the shares of the errors that later weights take up at best, [groups,K,K].

    A row is for the error of one weight, a column for a later weight. Each damped
    matrix is R times R transposed with R upper triangular, so the squared error is the
    sum of (errors times R)^2, column by column. A column's sum is 0 if its weight takes
    up R[j,i] / R[i,i] of each error j before it. The covariance is given with the last
    weight first, since its lower factor is then R with the last weight first. It is
    overwritten.
    """
    lower = _lower_factor(damp(flipped, DAMPING))
    upper = lower[:, ::-1, ::-1]
    diagonal = np.einsum("gkk->gk", upper)
    return np.asarray(upper / diagonal[:, None, :])


def _lower_factor(matrices: FloatArray) -> FloatArray:
    """The Cholesky factors, [groups,K,K].

    No covariance has a negative eigenvalue. Where one is found, arithmetic lost as much,
    and twice that is added to all variances. LinAlgError if that does not help.
    """
    if not np.isfinite(matrices).all():
        raise np.linalg.LinAlgError("a covariance is not finite")
    try:
        return np.asarray(np.linalg.cholesky(matrices))
    except np.linalg.LinAlgError:
        least = np.linalg.eigvalsh(matrices).min(axis=1)
    diagonal = np.arange(matrices.shape[1])
    lost = np.maximum(-2 * least, 0.0)
    matrices[:, diagonal, diagonal] += lost[:, None]
    return np.asarray(np.linalg.cholesky(matrices))


def _round(real: FloatArray, factors: FloatArray, most: int) -> FloatArray:
    """Return integers [groups, K, O], each rounded after those before it."""
    rounding = _Rounding(real, factors, most)
    rounding.round_range(0, real.shape[1])
    return rounding.rounded


class _Rounding:
    """The columns `real` [groups,K,O] as far as they are `rounded`.

    A function in a function that calls itself would refer to itself, so that the factors
    of one long layer would stay in memory beside those of the next.
    """

    def __init__(
        self, real: FloatArray, factors: FloatArray, most: int
    ) -> None:
        self._real = np.ascontiguousarray(real)
        self._factors, self._most = np.ascontiguousarray(factors), most
        self._remaining = self._real.copy()
        self.rounded = np.empty_like(self._real)
        self._errors = np.empty_like(self._real)

    def round_range(self, start: int, stop: int) -> None:
        """Round one half, then the other: one product passes many errors on to many weights."""
        if stop - start <= BLOCK:
            self._round_each(start, stop)
            return
        middle = (start + stop) // 2
        self.round_range(start, middle)
        shares = self._factors[:, start:middle, middle:stop]
        passed_on = np.matmul(
            shares.transpose(0, 2, 1), self._errors[:, start:middle]
        )
        self._remaining[:, middle:stop] += passed_on
        self.round_range(middle, stop)

    def _round_each(self, start: int, stop: int) -> None:
        """Round weight after weight: the extension does, or numpy, to the same bits."""
        extension = compiled.extension()
        if extension is not None:
            extension.round_each(
                self._remaining,
                self.rounded,
                self._errors,
                self._real,
                self._factors,
                start,
                stop,
                self._most,
            )
            return
        for index in range(start, stop):
            integers, error = self.rounded[:, index], self._errors[:, index]
            np.add(self._remaining[:, index], 0.5, out=integers)
            np.floor(integers, out=integers)
            # These two calls do the same as np.clip, in half the time.
            np.maximum(integers, -self._most, out=integers)
            np.minimum(integers, self._most, out=integers)
            np.subtract(self._real[:, index], integers, out=error)
            shares = self._factors[:, index, index + 1 : stop, None]
            self._remaining[:, index + 1 : stop] += shares * error[:, None, :]
