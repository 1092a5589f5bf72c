"""Rows for a division and a table of its quotient, such as tanh of a rescaled sum: those of the line, and a polynomial.

Of the division only the steps count at which the table changes: the line that is taken has these, and may have others of the steps
between. It is clipped where the table no longer changes.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np

from cvm.export.r1cs import polynomial, quotient
from cvm.export.r1cs.fit import MOST_EDGES, Edges, Quotient, choices, clipped
from cvm.export.r1cs.secret import Secret
from cvm.export.r1cs.system import System
from cvm.lower.runnable import RunnableFunction
from cvm.program import IntArray


@dataclass(frozen=True, eq=False)
class Tabulated:
    """A function is `entries[z - index.low]` for the quotient z of its argument."""

    index: Quotient
    entries: IntArray

    @property
    def rows(self) -> int:
        """The number of rows for each element."""
        of_table = polynomial.rows_of(len(self.entries), self.is_odd)
        return quotient.rows_of(self.index) + of_table

    @property
    def is_odd(self) -> bool:
        """Whether the table takes half of the rows."""
        return polynomial.is_odd(self.entries)

    @property
    def form(self) -> Hashable:
        """What elements must share for their rows to be written at once."""
        return quotient.form_of(self.index), self.is_odd


def tabulated_of(
    function: RunnableFunction,
    which: int,
    steps: tuple[IntArray, IntArray],
    interval: tuple[int, int],
) -> Tabulated | None:
    """A line for the last member but one of a chain, and a table for the last; None if it has none, or is no such chain."""
    starts, values = steps
    members = function.function.members
    if len(members) < 2 or not 3 <= len(starts) <= MOST_EDGES:
        return None
    begins, before = (
        function.at(np.full(len(x), which), x)[members[-2]]
        for x in (starts[1:], starts[1:] - 1)
    )
    if not ((begins == before + 1).all() and (np.diff(begins) > 0).all()):
        return None
    first, last = int(before[0]), int(begins[-1])
    if last - first >= polynomial.MOST_ENTRIES:
        return None
    choice = next(choices(Edges(starts[1:], begins)), None)
    if choice is None:
        return None
    line = choice.line(choice.step - 1)  # one quotient for each argument
    index = clipped(line, (first, last), *interval)
    if index is None:
        return None
    places = np.searchsorted(begins, np.arange(first, last + 1), "right")
    return Tabulated(index, values[places])


def picked(system: System, x: Secret, plans: Sequence[Tabulated]) -> Secret:
    """A new wire for each element of a vector, by its plan; all share a form."""
    z = quotient.divided(system, x, [plan.index for plan in plans])
    place = z.minus(plans[0].index.low)
    return polynomial.evaluated(system, place, [p.entries for p in plans])
