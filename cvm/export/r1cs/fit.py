"""The shortest line that has the steps of a function: y belongs to x where 0 <= m * x + b - d * y <= most.

A function that rises by 1 at the arguments t_1 < t_2 < ... to the values j_1, j_2, ... has such a line if, with p = m * t - d * j,
0 <= b + p < m (the step begins at t, and not before) and b + p - m + d <= most < b + p + d (the step before ends there) hold
for each pair. There is an offset b if the p differ by less than m. Beyond the first and last values
the quotient goes on, and is clipped.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from cvm.export.r1cs.fractions import Division
from cvm.program import IntArray

MOST = 2**62  # of a dividend, in 64 bits
MOST_EDGES = 4096
PAIRED = 64  # edges at each end of which pairs bound the slope
SLOPES_TRIED = 4  # times the number of edges
MOST_LINES = 96


@dataclass(frozen=True)
class Line:
    """y belongs to x where 0 <= slope * x + offset - step * y <= most."""

    slope: int
    offset: int
    step: int
    most: int

    def rest(self, x: int, y: int) -> int:
        """The remainder, which lies in 0..most if y belongs to x."""
        return self.slope * x + self.offset - self.step * y


@dataclass(frozen=True)
class Quotient:
    """A line, clipped to low..high: what lies beyond is at most `under` and `over` times most + 1.

    The slope may be below 0.
    """

    line: Line
    low: int
    high: int
    under: int
    over: int


@dataclass(frozen=True)
class Edges:
    """Where a rising function steps up by 1: `values[i]` begins at `starts[i]`."""

    starts: IntArray
    values: IntArray

    def __len__(self) -> int:
        return len(self.starts)

    def part(self, first: int, after: int) -> Edges:
        """Some of them."""
        here = slice(first, after)
        return Edges(self.starts[here], self.values[here])


@dataclass(frozen=True)
class LineChoice:
    """A slope and a step that fit edges, which leave some room for the offset and the greatest remainder."""

    slope: int
    step: int
    least: int  # of p
    greatest: int

    @property
    def most(self) -> tuple[int, int]:
        """The least and the greatest `most` of such a line."""
        spread = self.greatest - self.least
        return (
            self.step - self.slope + spread,
            self.step + self.slope - spread - 2,
        )

    def line(self, most: int) -> Line:
        """The line with this greatest remainder."""
        offset = max(0, most + 1 - self.step) - self.least
        return Line(self.slope, offset, self.step, most)


def edges_of(starts: IntArray, values: IntArray) -> Edges | None:
    """The edges of a function; None if it does not rise by 1 at each."""
    if not (np.diff(values) == 1).all():
        return None
    return Edges(starts[1:], values[1:])


def fit(
    starts: IntArray, values: IntArray, low: int, high: int
) -> Quotient | None:
    """The line with the fewest bits for the steps of a function on low..high; None if there is none.

    `starts[0]` is `low`. At least two steps are given.
    """
    if (np.diff(values) == -1).all():
        mirrored_starts = -(starts[1:] - 1)
        turned = np.concatenate([[-high], mirrored_starts[::-1]])
        quotient = fit(turned, values[::-1], -high, -low)
        if quotient is None:
            return None
        line = replace(quotient.line, slope=-quotient.line.slope)
        return replace(quotient, line=line)
    edges = edges_of(starts, values)
    if edges is None or len(edges) > MOST_EDGES:
        return None
    if len(edges) == 1:
        line = _threshold(edges, low, high)
    else:
        choice = next(choices(edges), None)
        if choice is None:
            return None
        line = choice.line(choice.most[0])
    return clipped(line, (int(values[0]), int(values[-1])), low, high)


def clipped(
    line: Line, limits: tuple[int, int], low: int, high: int
) -> Quotient | None:
    """The quotient by a rising line within limits, for arguments low..high; None if its dividend is too large."""
    if abs(line.slope) * max(-low, high) + abs(line.offset) > MOST // 4:
        return None
    first, last = limits
    under = -line.rest(low, first)
    over = line.rest(high, last) - line.most
    period = line.most + 1
    return Quotient(
        line, *limits, max(-(-under // period), 0), max(-(-over // period), 0)
    )


def _threshold(edges: Edges, low: int, high: int) -> Line:
    """A single step needs no clipping if a step is as wide as the argument on both sides of it."""
    t, j = int(edges.starts[0]), int(edges.values[0])
    step = max(high + 1 - t, t - low)
    return Line(1, step * j - t, step, step - 1)


def choices(edges: Edges) -> Iterator[LineChoice]:
    """Slopes and steps of lines that fit at least two edges, the shortest first."""
    t, j = edges.starts, edges.values
    left = np.arange(min(PAIRED, len(t) - 1))
    right = np.arange(max(len(t) - PAIRED, 1), len(t))
    run = t[right][None] - t[left][:, None]
    rise = (j[right][None] - j[left][:, None]).astype(float)
    apart = rise > 0
    least = ((run - 1)[apart] / rise[apart]).max()
    most = ((run + 1)[apart] / rise[apart]).min()
    if least > most + 1e-6:
        return
    slopes = np.arange(1, SLOPES_TRIED * len(t) + 2)
    # The ends are not exact: each pair is tried on all edges.
    first = np.floor(least * slopes + 1e-9).astype(np.int64)
    last = np.ceil(most * slopes - 1e-9).astype(np.int64)
    count = 0
    for slope, low, high in zip(
        slopes.tolist(), first.tolist(), last.tolist(), strict=True
    ):
        for step in range(max(low, 1), high + 1):
            p = slope * t - step * j
            choice = LineChoice(slope, step, int(p.min()), int(p.max()))
            if choice.greatest - choice.least < slope:
                yield choice
                count += 1
        if count >= MOST_LINES:
            return


def longest_first(edges: Edges) -> int:
    """How many edges from the first on have a line."""
    return _longest(edges, from_first=True)


def longest_last(edges: Edges) -> int:
    """How many edges up to the last have a line."""
    return _longest(edges, from_first=False)


def _longest(edges: Edges, *, from_first: bool) -> int:
    least, beyond = 1, len(edges) + 1
    while beyond - least > 1:
        middle = (least + beyond) // 2
        subset = edges.part(0, middle)
        if not from_first:
            subset = edges.part(len(edges) - middle, len(edges))
        if next(choices(subset), None) is None:
            beyond = middle
        else:
            least = middle
    return least


def as_line(division: Division) -> Line:
    """The same quotients."""
    step = division.step
    return Line(division.slope, division.offset, step, step - 1)
