"""The least division that gives a step function: clip(floor((m * x + b) / 2^k)), by one line or two.

A function that rises by 1 at the arguments t_1 < t_2 < ... to the values j_1, j_2, ... is such a quotient if
m * t + b >= 2^k * j and m * (t - 1) + b < 2^k * j hold for each pair. Beyond the first and last
values the quotient goes on, and is clipped. Fewer bits k are fewer constraints.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from cvm.program import IntArray

MOST_BITS = 46
MOST = 2**62  # of a dividend, in 64 bits
BENDS_TRIED = 6


@dataclass(frozen=True)
class Line:
    """(slope * x + offset) / 2^bits."""

    slope: int
    offset: int
    bits: int

    def at(self, x: int) -> int:
        """The quotient, rounded down."""
        return (self.slope * x + self.offset) >> self.bits

    def with_bits(self, bits: int) -> Line:
        """The same line over a larger power of two."""
        more = bits - self.bits
        return Line(self.slope << more, self.offset << more, bits)


@dataclass(frozen=True)
class Quotient:
    """`below` up to the first argument of the value `bend`, `above` from there on; clipped to low..high.

    `turned`: the argument is -x. `least` and `most` are the quotients at the ends of the interval, before they are clipped.
    """

    below: Line
    above: Line
    bend: int
    start: int  # the argument at which the value `bend` begins
    low: int
    high: int
    least: int
    most: int
    turned: bool

    @property
    def is_straight(self) -> bool:
        """Whether one line is all."""
        return self.below == self.above


def fit(
    starts: IntArray, values: IntArray, low: int, high: int
) -> Quotient | None:
    """The division with the fewest bits for the steps of a function on low..high; None if there is none.

    `starts[0]` is `low`. At least two steps are given.
    """
    jumps = np.diff(values)
    if (jumps == -1).all():
        ends = -(starts[1:] - 1)
        turned = fit(
            np.concatenate([[-high], ends[::-1]]), values[::-1], -high, -low
        )
        return replace(turned, turned=True) if turned else None
    if not (jumps == 1).all():
        return None
    lines = _lines(starts[1:], values[1:], low, high)
    if lines is None:
        return None
    below, above, bend = lines
    if max(map(_size, (below, above), [max(-low, high)] * 2)) >= MOST:
        return None
    return Quotient(
        below,
        above,
        int(values[1 + bend]),
        int(starts[1 + bend]),
        int(values[0]),
        int(values[-1]),
        below.at(low),
        above.at(high),
        turned=False,
    )


def _size(line: Line, most: int) -> int:
    """No dividend is larger, for arguments of at most this size."""
    return abs(line.slope) * most + abs(line.offset)


def _lines(
    t: IntArray, j: IntArray, low: int, high: int
) -> tuple[Line, Line, int] | None:
    """One line, or two that share the step of the returned number."""
    if len(t) == 1:
        line = _threshold(int(t[0]), int(j[0]), low, high)
        return line, line, 0
    whole = _line(t, j)
    if whole is not None:
        return whole, whole, 0
    first, last = 1, len(t) - 1  # steps that one line reaches, and does not
    while last - first > 1:
        middle = (first + last) // 2
        if _line(t[: middle + 1], j[: middle + 1]) is None:
            last = middle
        else:
            first = middle
    found = None
    for bend in range(first, max(first - BENDS_TRIED, 0), -1):
        below = _line(t[: bend + 1], j[: bend + 1])
        above = _line(t[bend:], j[bend:]) if bend + 1 < len(t) else None
        if below is None or above is None:
            continue
        bits = max(below.bits, above.bits)
        if found is None or bits < found[0].bits:
            found = below.with_bits(bits), above.with_bits(bits), bend
    return found


def _threshold(t: int, j: int, low: int, high: int) -> Line:
    """A single step needs no clipping if the quotient moves by 1 in all."""
    bits = max(high - t, t - 1 - low).bit_length()
    return Line(1, (j << bits) - t, bits)


def _line(t: IntArray, j: IntArray) -> Line | None:
    """The line with the fewest bits: one that holds with k bits holds with k + 1."""
    least, most, found = -1, MOST_BITS, _line_of(t, j, MOST_BITS)
    if found is None:
        return None
    while most - least > 1:
        middle = (least + most) // 2
        line = _line_of(t, j, middle)
        if line is None:
            least = middle
        else:
            most, found = middle, line
    return found


def _line_of(t: IntArray, j: IntArray, bits: int) -> Line | None:
    """A line of so many bits, by the slope that leaves most room for the offset: the room is concave in the slope."""
    origin, t = int(t[0]), t - t[0]
    first, j = int(j[0]), j - j[0]
    rise, run = int(j[-1]) << bits, int(t[-1])
    least = -((-rise - 1) // (run + 1))
    most = (rise - 1) // (run - 1) if run > 1 else rise
    if least > most:
        return None
    while least < most:
        middle = (least + most) // 2
        if _room(t, j, bits, middle + 1)[0] > _room(t, j, bits, middle)[0]:
            least = middle + 1
        else:
            most = middle
    room, offset = _room(t, j, bits, least)
    if room < 0:
        return None
    return Line(least, offset + (first << bits) - least * origin, bits)


def _room(t: IntArray, j: IntArray, bits: int, slope: int) -> tuple[int, int]:
    """How far the offset may move, and its least; below 0 there is none."""
    scaled = j << bits
    least = int((scaled - slope * t).max())
    most = int((scaled - 1 - slope * (t - 1)).min())
    return most - least, least
