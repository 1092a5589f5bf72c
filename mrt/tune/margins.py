"""Margins of the best class over the others, and how often noise of a given size overturns them.

An expectation from margins is a finer measure than a count of disagreements.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from mrt.exact.logarithm import logarithms

FloatArray = npt.NDArray[np.float64]
CONTENDERS = 5  # the classes whose margins to the best one are measured
# Of the best probability: a class below it cannot win, and its logarithm is mostly rounding.
LEAST_SHARE = 1e-3
# The allowed deviation of a sum of probabilities from 1: a program rounds them.
SUM_TOLERANCE = 1e-2
# The margins near 0, see `expected_disagreement`.
LOW_SHARE, FEWEST_LOW = 0.1, 8


def is_distribution(output: npt.NDArray[Any]) -> bool:
    """Whether an output holds probabilities.

    Their logarithms are compared then, as the inputs of the softmax would be.
    """
    return (
        bool(output.min() >= 0)
        and abs(float(output.sum(dtype=np.float64)) - 1) < SUM_TOLERANCE
    )


@dataclass(frozen=True)
class ClassMargins:
    """The margins of one float answer: by how much the best class is ahead of each other class.

    `classes` are the classes that could win, best first.
    """

    classes: npt.NDArray[np.intp]
    logarithmic: bool
    floor: float
    margins: FloatArray

    @classmethod
    def of(cls, output: npt.NDArray[Any]) -> ClassMargins:
        """Return the margins of a float output, which is a vector of classes.

        Of equal classes the lower index is better.
        """
        flat = output.reshape(-1).astype(np.float64)
        order = np.argsort(-flat, kind="stable")[: CONTENDERS + 1]
        logarithmic = is_distribution(flat)
        floor = float(flat[order[0]]) * LEAST_SHARE
        if logarithmic:
            order = order[: max(2, int((flat[order] >= floor).sum()))]
        return cls(
            order, logarithmic, floor, _ahead(flat[order], logarithmic, floor)
        )

    def noise(self, output: npt.NDArray[Any]) -> FloatArray:
        """Return by how much each margin differs in the output of a program."""
        scores = output.reshape(-1).astype(np.float64)[self.classes]
        return _ahead(scores, self.logarithmic, self.floor) - self.margins


def _ahead(scores: FloatArray, logarithmic: bool, floor: float) -> FloatArray:
    if logarithmic:
        scores = logarithms(np.maximum(scores, max(floor, 1e-30)))
    ahead: FloatArray = scores[0] - scores[1:]
    return ahead


def expected_disagreement(
    margins: Sequence[float], deviations: Sequence[float]
) -> float:
    """Return how often normal noise overturns a margin.

    It is averaged over the margins and over the deviations, of which each sample has
    one: samples differ in their noise, some by far. Most overturned margins are near 0,
    and samples contain few of these. So the lowest tenth, at least 8, are spread evenly
    from 0 to the greatest of them.
    """
    ordered = sorted(margins)
    low = low_count(len(ordered))
    return math.fsum(
        _overturned(ordered, low, deviation) for deviation in deviations
    ) / len(deviations)


def low_count(margins: int) -> int:
    """Return how many of the margins are the low ones."""
    return min(max(math.ceil(margins * LOW_SHARE), FEWEST_LOW), margins)


def relative_error(margins: int) -> float:
    """Return the standard error of an expected disagreement, relative to it.

    It is that of the density of margins near 0, which is the count of the low ones over
    the greatest of them.
    """
    return 1 / math.sqrt(low_count(margins))


def _overturned(ordered: Sequence[float], low: int, deviation: float) -> float:
    if deviation == 0:
        return 0.0
    near = low * _average_tail(ordered[low - 1] / deviation)
    return (
        near + math.fsum(_tail(margin / deviation) for margin in ordered[low:])
    ) / len(ordered)


def _tail(x: float) -> float:
    """Return how often a normal number exceeds x."""
    return math.erfc(x / math.sqrt(2)) / 2


def _average_tail(x: float) -> float:
    """Return the average of `_tail` from 0 to x."""
    if x == 0:
        return 0.5
    density = (1 - math.exp(-x * x / 2)) / math.sqrt(2 * math.pi)
    return _tail(x) + density / x
