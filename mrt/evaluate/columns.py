"""Finds a column of an output that is lost beside greater ones: a regressor's rooms beside its prices.

All columns together have the signal to noise of the greatest, which hides what became of the others.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from mrt.evaluate.limits import GOOD_DECIBELS, HIDDEN_COLUMN_DECIBELS
from mrt.evaluate.scores import ratio_in_decibels
from mrt.exact.ordered_sum import row_sums

Array = npt.NDArray[Any]
Reals = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]

MOST_COLUMNS = 32
"""An output with more is a description, whose numbers are read together."""
FEWEST_SAMPLES = 8
"""Of fewer, a column may happen to be small, or never the greatest."""
SMALLER = 16
"""So many times less than the greatest column: what is lost by the scale of that one is no smaller by chance."""
LEAST_SIZE = 1e-6
"""Of the greatest column; what is smaller is what float32 leaves of a difference of such numbers."""
LEAST_SPREAD = 1e-5
"""Of a column's own size; what varies less is a constant."""
LARGEST_OF_ONE_UNIT = 1.001
"""Numbers that are all within -1 and 1, up to rounding, are probabilities, scores or cosines, which have one unit."""
UNIT_TOLERANCE = LARGEST_OF_ONE_UNIT - 1
"""What rounding may add to 1, and to a logarithm that is at most 0."""


@dataclass(frozen=True)
class SmallColumn:
    """The noisiest of an output's small columns, its SNR and that of the output.

    `agreement_may_excuse`: the output was taken for the class output and may hold classes, so that the agreement counts as well.
    `rank` counts the axes of the output.
    """

    output: str
    column: int
    decibels: float
    decibels_of_output: float
    agreement_may_excuse: bool = False
    rank: int = 2

    @property
    def name(self) -> str:
        """As people index it."""
        others = ":," * (self.rank - 1)
        return f"column [{others}{self.column}] of '{self.output}'"

    @property
    def is_lost(self) -> bool:
        """Whether its signal to noise is not good, and that of the whole output hides it."""
        hidden = self.decibels_of_output - HIDDEN_COLUMN_DECIBELS
        return self.decibels < min(GOOD_DECIBELS, hidden)


class Columns:
    """Counts an output [N,C], or sequences [N,T,C], of few columns, each by itself, and how often it is the greatest of its row."""

    def __init__(self, columns: int, rank: int = 2) -> None:
        self._columns = columns
        self._rank = rank
        self.samples = 0
        self._rows = 0
        self._signal = np.zeros(columns)
        self._noise = np.zeros(columns)
        self._first: Reals | None = None
        # Sums of the differences from the first row, and of their squares.
        self._shifted_sum = np.zeros(columns)
        self._shifted_squares = np.zeros(columns)
        self._largest_in = np.zeros(columns, np.int64)
        self._nonzero_in = np.zeros(columns, np.int64)
        self._has_one_unit = True

    @classmethod
    def of(cls, values: Array) -> Columns | None:
        """Return counts for an output like these values. None: it has no columns, or many.

        The last axis of a sequence may be its steps; it is columns where it is the shorter one.
        """
        if (
            values.ndim not in (2, 3)
            or not values.size
            or not 2 <= values.shape[-1] <= MOST_COLUMNS
        ):
            return None
        if values.ndim > 2 and values.shape[-1] >= values.shape[-2]:
            return None
        return cls(values.shape[-1], values.ndim)

    def add(self, real: Array, integer: Array) -> None:
        """Add one sample's rows."""
        self.samples += 1
        exact = real.astype(np.float64).reshape(-1, self._columns)
        integer = integer.reshape(-1, self._columns)
        self._has_one_unit = self._has_one_unit and _has_one_unit(exact)
        self._first = exact[0] if self._first is None else self._first
        shifted = exact - self._first
        self._rows += len(exact)
        self._signal += row_sums((exact**2).T)
        self._noise += row_sums(((exact - integer) ** 2).T)
        self._shifted_sum += row_sums(shifted.T)
        self._shifted_squares += row_sums((shifted**2).T)
        self._largest_in += np.bincount(
            exact.argmax(axis=1), minlength=self._columns
        )
        self._nonzero_in += np.count_nonzero(exact, axis=0)

    def noisiest(
        self, output: str, *, holds_no_classes: bool, is_class_output: bool
    ) -> SmallColumn | None:
        """Return the small column with the least SNR.

        None: no small column counts. A column that may be the score of a class, since it is the largest of some rows and
        not of others, is left out, unless the output `holds_no_classes`. An agreement may excuse the column of a class
        output, unless one column is the largest of every row: such an output shows no classes.
        """
        always = self._largest_in == self._rows
        counted = ~self._win_at_times() | holds_no_classes
        agreement_may_excuse = is_class_output and not always.any()
        return self._noisiest_of(
            output, counted, agreement_may_excuse=agreement_may_excuse
        )

    def noisiest_that_may_be_score(self, output: str) -> SmallColumn | None:
        """Return the small column with the least SNR among those that `noisiest` leaves out, as they may be scores of classes."""
        return self._noisiest_of(output, self._win_at_times())

    def _win_at_times(self) -> Flags:
        """Return which columns are the largest of some rows and not of others."""
        wins = (self._largest_in > 0) & (self._largest_in < self._rows)
        return np.asarray(wins, np.bool_)

    def _noisiest_of(
        self,
        output: str,
        counted: Flags,
        *,
        agreement_may_excuse: bool = False,
    ) -> SmallColumn | None:
        """Return the small column with the least SNR of those that are counted; None: no small one is, or it may be chance."""
        noise, signal = float(self._noise.sum()), float(self._signal.sum())
        of_output = ratio_in_decibels(signal, noise)
        if self.samples < FEWEST_SAMPLES or self._has_one_unit:
            return None
        if of_output is None:
            return None
        counted = self._small() & counted
        ratios = np.where(counted, self._noise, 0) / np.where(
            counted, self._signal, 1
        )
        worst = int(ratios.argmax())
        if not ratios[worst] > 0:
            return None
        return SmallColumn(
            output,
            worst,
            -10 * math.log10(ratios[worst]),
            of_output,
            agreement_may_excuse,
            self._rank,
        )

    def _small(self) -> Flags:
        """Return which columns are much smaller than the greatest, vary, and are not 0 in most rows."""
        greatest = self._signal.max()
        is_small = self._signal * SMALLER**2 <= greatest
        is_meant = self._signal > LEAST_SIZE**2 * greatest
        change = self._shifted_squares - self._shifted_sum**2 / self._rows
        varies = change > LEAST_SPREAD**2 * self._signal
        is_mostly_nonzero = 2 * self._nonzero_in >= self._rows
        return np.asarray(
            is_small & is_meant & varies & is_mostly_nonzero, np.bool_
        )


def _has_one_unit(rows: Reals) -> bool:
    """Whether the numbers of rows are probabilities or cosines, or logarithms of probabilities that add up to 1."""
    if np.abs(rows).max() <= LARGEST_OF_ONE_UNIT:
        return True
    if rows.max() > UNIT_TOLERANCE:
        return False
    sums = np.exp(rows).sum(axis=1)
    return bool(np.abs(sums - 1).max() < UNIT_TOLERANCE)
