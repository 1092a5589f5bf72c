"""A function of few steps of any kind: the number n of the step, low[n] <= x <= high[n], and the bits of both differences.

The steps do not overlap, so that one n fits. A number without a step has a high below its low.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cvm.export.r1cs import lookup
from cvm.export.r1cs.secret import Secret
from cvm.export.r1cs.system import System, in_range, weights_of
from cvm.program import IntArray

MOST_STEPS = 512


@dataclass(frozen=True, eq=False)
class Stairs:
    """From `lows[i]` to `highs[i]`, which is step i, the function is `values[i]`."""

    lows: IntArray
    highs: IntArray
    values: IntArray

    @property
    def bits(self) -> int:
        """The bits of a step's number."""
        return (len(self.lows) - 1).bit_length()

    @property
    def widest(self) -> int:
        """The greatest difference inside a step."""
        return int((self.highs - self.lows).max())

    @property
    def form(self) -> tuple[int, int]:
        """What stairs must share for their rows to be written at once."""
        return self.bits, self.widest.bit_length()


def stairs_of(starts: IntArray, values: IntArray, high: int) -> Stairs | None:
    """The steps of a function that ends at `high`; None if there are too many."""
    if len(starts) > MOST_STEPS:
        return None
    return Stairs(starts, np.append(starts[1:] - 1, high), values)


def climbed(system: System, x: Secret, stairs: list[Stairs]) -> Secret:
    """A new wire for each element of a vector, by its stairs; all share a form."""
    count = stairs[0].bits
    steps = np.array(
        [np.searchsorted(s.lows, n, "right") - 1 for s, n in _pairs(stairs, x)]
    )
    number = system.new(np.maximum(steps, 0))
    beyond = [int(staircase.highs[-1]) for staircase in stairs]
    lows = _table([s.lows for s in stairs], count, [n + 1 for n in beyond])
    highs = _table([s.highs for s in stairs], count, beyond)
    values = _table([s.values for s in stairs], count, [0] * len(stairs))
    low, high, value = lookup.all_looked_up(
        system, number, count, (lows, highs, values)
    )
    widest = weights_of(np.array([staircase.widest for staircase in stairs]))
    in_range(system, x.minus(low), widest)
    in_range(system, high.minus(x), widest)
    return value


def _pairs(stairs: list[Stairs], x: Secret) -> list[tuple[Stairs, int]]:
    return list(zip(stairs, x.values.tolist(), strict=True))


def _table(rows: list[IntArray], count: int, fillers: list[int]) -> IntArray:
    """Rows of 2^count numbers, each filled up with its filler."""
    table = np.empty((len(rows), 2**count), np.int64)
    for place, (row, filler) in enumerate(zip(rows, fillers, strict=True)):
        table[place, : len(row)] = row
        table[place, len(row) :] = filler
    return table
