"""A function with a bend, as two lines that share their greatest remainder; a bit s decides which of them holds.

With s = 1 the upper line holds and y is at least `at`; with s = 0 the lower line holds, y is at most `at`, and where it is `at`
the remainder is at most `half`. `found` checks that both hold only where they are right, and that one holds everywhere: the upper
line reaches the value `at` at the argument X, and the lower line leaves it, by `half`, after the argument Z, with
t <= X <= Z + 1 <= u for the interval t..u - 1 on which the function is `at`.

Where the function rounds twice, both lines are one, of z = floor((m * x + b) / d), and s decides on m and b (`stages.py`).
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np

from cvm.export.r1cs.fit import (
    MOST_EDGES,
    Edges,
    Line,
    LineChoice,
    Quotient,
    choices,
    clipped,
    longest_first,
    longest_last,
)
from cvm.export.r1cs.fractions import Division
from cvm.export.r1cs.secret import Secret, constant
from cvm.export.r1cs.system import System, in_range, number_of, weights_of
from cvm.program import IntArray

MOST_BENDS = 6  # values tried at which a function may bend


@dataclass(frozen=True)
class Bend:
    """`low` to `high` are at - 1 - k to at + k. `excess` is the most that lies beyond them, in multiples of most + 1.

    `inner` holds the divisions of x, with one step, whose quotients are the arguments of the lines.
    """

    upper: Line
    lower: Line
    low: int
    at: int
    high: int
    half: int
    excess: int
    inner: tuple[Division, Division] | None = None

    @property
    def first(self) -> int:
        """The least argument of the upper line that has the value of the bend."""
        return _first(self.upper, self.at)

    @property
    def form(self) -> Hashable:
        """What bends must share for their rows to be written at once."""
        step = self.inner[0].step if self.inner else 0
        return (
            self.at,
            self.high,
            self.upper.most.bit_length(),
            self.excess.bit_length(),
            step.bit_length(),
        )

    @property
    def rows(self) -> int:
        """The number of rows for each element."""
        inner = self.inner[0].step.bit_length() + 1 if self.inner else 0
        beyond = self.excess.bit_length()
        value = 3 + (self.high - self.at).bit_length()
        most = self.upper.most.bit_length()
        return value + most + 1 + inner + beyond + (beyond > 0)


def shortest_bend(edges: Edges, low: int, high: int) -> Bend | None:
    """The bend with the fewest bits for the steps of a function on low..high; None if there is none."""
    if not 4 <= len(edges) <= MOST_EDGES:
        return None
    first = len(edges) - longest_last(edges)
    last = longest_first(edges)
    best: Bend | None = None
    for split in islice(range(max(first, 2), len(edges) - 1), MOST_BENDS):
        if split > last:
            break
        for bend in _at(edges, split, low, high):
            if best is None or bend.rows < best.rows:
                best = bend
    return best


def _at(edges: Edges, split: int, low: int, high: int) -> Iterator[Bend]:
    """The bend with edges from `split` on in the upper line, if there is one."""
    upper = list(choices(edges.part(split, len(edges))))
    lower = list(choices(edges.part(0, split)))
    shared = sorted(_shared(upper, lower), key=lambda pair: pair[0])
    first, last = int(edges.values[0]) - 1, int(edges.values[-1])
    at = int(edges.values[split]) - 1
    for most, above, below in shared:
        lines = above.line(most), below.line(most)
        above_at = clipped(lines[0], (at, last), 0, high)
        below_at = clipped(lines[1], (first, at), low, 0)
        if above_at is None or below_at is None:
            continue
        reach = reach_of((first, at, last), above_at, below_at, (low, high))
        t, u = int(edges.starts[split - 1]), int(edges.starts[split])
        half = _half(*lines, at, (t, u))
        if reach is not None and half is not None:
            excess = max(above_at.over, below_at.under)
            yield Bend(*lines, at - 1 - reach, at, at + reach, half, excess)
            return


def _shared(
    upper: list[LineChoice], lower: list[LineChoice]
) -> Iterator[tuple[int, LineChoice, LineChoice]]:
    """Pairs of choices that have a greatest remainder in common, with the least such."""
    for above in upper:
        for below in lower:
            most = max(above.most[0], below.most[0])
            if most <= min(above.most[1], below.most[1]):
                yield most, above, below


def reach_of(
    values: tuple[int, int, int],
    above: Quotient,
    below: Quotient,
    ends: tuple[int, int],
) -> int | None:
    """How far the values go to both sides of the bend; None if a value beyond the function's fits an argument.

    `ends` are the least and the greatest argument of the lines.
    """
    first, at, last = values
    reach = max(last - at, at - 1 - first, 1)
    fits_above = above.over or above.line.rest(ends[1], last + 1) >= 0
    before = below.line.rest(ends[0], first - 1)
    fits_below = below.under or before <= below.line.most
    if last - at < reach and fits_above:
        return None
    if at - 1 - first < reach and fits_below:
        return None
    return reach


def _first(line: Line, value: int) -> int:
    return -(line.rest(0, value) // line.slope)


def _half(
    upper: Line, lower: Line, at: int, interval: tuple[int, int]
) -> int | None:
    """The greatest remainder of the lower line at the value of the bend."""
    first = _first(upper, at)
    if not interval[0] <= first <= interval[1]:
        return None
    least = max(lower.rest(first - 1, at), lower.most // 2)
    most = min(
        lower.rest(interval[1], at) - 1, 2 ** (lower.most.bit_length() - 1) - 1
    )
    return least if least <= most else None


def bent(system: System, x: Secret, bends: Sequence[Bend]) -> Secret:
    """A new wire for each element of a vector, by its bend; all share a form.

    A bit more is 1 where y is `at` and s is 0, and nowhere else: there the highest bit of the remainder must be 0.
    """
    form, lines = bends[0], _Lines.of(bends)
    inner = [bend.inner for bend in bends if bend.inner is not None]
    if inner:
        s, z = _inner(system, x, lines, inner)
    else:
        s, z = _bit(system, lines.upper.rest(x, form.at).values >= 0), x
    y, at_bend = _value(system, z, s, lines, form)
    above, below = lines.upper.rest(z, y), lines.lower.rest(z, y)
    period, count = lines.most + 1, form.excess.bit_length()
    nothing = constant(np.zeros(x.shape, np.int64))
    if count:
        beyond = np.where(
            s.values == 1, above.values // period, -(below.values // period)
        )
        excess, _ = number_of(system, beyond, weights_of(2**count - 1))
        end = s.times(form.high - form.low).plus(form.low)
        system.require_product(excess, end.minus(y), nothing)
        above = above.minus(excess.times(period))
        below = below.plus(excess.times(period))
    rest = below.plus(system.product(s, above.minus(below)))
    last = in_range(system, rest, lines.weights)
    far = s.times(form.high - form.at + 2).plus(last).minus(y).plus(form.at)
    system.require_product(at_bend, far, nothing)
    return y


def _bit(system: System, values: IntArray) -> Secret:
    bit, _ = number_of(system, values.astype(np.int64), np.ones(1, np.int64))
    return bit


@dataclass(frozen=True)
class _Column:
    """A line for each element."""

    slope: IntArray
    offset: IntArray
    step: IntArray

    @classmethod
    def of(cls, lines: Sequence[Line | Division]) -> _Column:
        """The numbers of the lines."""
        columns = np.array([(a.slope, a.offset, a.step) for a in lines])
        return cls(*columns.T)

    def rest(self, x: Secret, y: Secret | int) -> Secret:
        """m * x + b - d * y."""
        dividend = x.times(self.slope).plus(self.offset)
        if isinstance(y, int):
            return dividend.minus(self.step * y)
        return dividend.minus(y.times(self.step))


@dataclass(frozen=True)
class _Lines:
    upper: _Column
    lower: _Column
    most: IntArray
    weights: IntArray
    first: IntArray  # where the upper line begins

    @classmethod
    def of(cls, bends: Sequence[Bend]) -> _Lines:
        """The lines of elements, with the weights of their remainders."""
        most = np.array([bend.upper.most for bend in bends])
        half = np.array([bend.half for bend in bends])
        rest = (most - half)[:, None]
        return cls(
            _Column.of([bend.upper for bend in bends]),
            _Column.of([bend.lower for bend in bends]),
            most,
            np.concatenate([weights_of(half), rest], -1),
            np.array([bend.first for bend in bends]),
        )


def _inner(
    system: System,
    x: Secret,
    lines: _Lines,
    inner: Sequence[tuple[Division, Division]],
) -> tuple[Secret, Secret]:
    """s, and the quotient z of x by the division that s chooses.

    z is an integer, as d * z + r is one, and so is m * z for the slope m of the outer line, which has no divisor in common with d.
    """
    upper = _Column.of([above for above, _ in inner])
    lower = _Column.of([below for _, below in inner])
    above, below = upper.rest(x, 0), lower.rest(x, 0)
    step = upper.step
    s = _bit(system, above.values // step >= lines.first)
    z = system.new(
        np.where(s.values == 1, above.values // step, below.values // step)
    )
    dividend = below.plus(system.product(s, above.minus(below)))
    in_range(system, dividend.minus(z.times(step)), weights_of(step - 1))
    return s, z


def _value(
    system: System, z: Secret, s: Secret, lines: _Lines, form: Bend
) -> tuple[Secret, Secret]:
    """The results, sums of `low` or `at`, by s, a natural number and the bit of the bend; and this bit."""
    above, below = (
        column.rest(z, 0).values // column.step
        for column in (lines.upper, lines.lower)
    )
    values = np.where(
        s.values == 1,
        np.clip(above, form.at, form.high),
        np.clip(below, form.low, form.at),
    )
    y = system.new(values)
    special = (values == form.at) & (s.values == 0)
    at_bend = _bit(system, special)
    first = s.times(form.at - form.low).plus(form.low)
    natural = y.minus(first).minus(at_bend)
    in_range(system, natural, weights_of(form.high - form.at))
    return y, at_bend
