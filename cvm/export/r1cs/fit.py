"""The shortest division that gives a step function: clip(floor((m * x + b) / 2^k)), by one line or several.

A function that rises by 1 at the arguments t_1 < t_2 < ... to the values j_1, j_2, ... is such a quotient if
m * t + b >= 2^k * j and m * (t - 1) + b < 2^k * j hold for each pair. Beyond the first and last
values the quotient goes on, and is clipped.

Of several lines, neighbours share a step. So the value alone decides the line: at an argument before the shared step the
later line is below the shared value, and from it on the earlier line has reached it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from cvm.program import IntArray

MOST_BITS = 46
MOST = 2**62  # of a dividend, in 64 bits
BITS_TRIED = range(7, MOST_BITS, 3)
ROWS_OF_BEND = 9  # about: a comparison of 8 bits with a constant, and a product
MOST_ROWS = (
    200  # of a division; a chain has as many, one instruction after another
)


@dataclass(frozen=True)
class Line:
    """(slope * x + offset) / 2^bits."""

    slope: int
    offset: int
    bits: int

    def at(self, x: int) -> int:
        """The quotient, rounded down."""
        return (self.slope * x + self.offset) >> self.bits


@dataclass(frozen=True)
class Quotient:
    """Lines in order; the next one holds from the value `bends[i]` on, which begins at the argument `starts[i]`.

    `turned`: the argument is -x. The result is clipped to low..high; `least` and `most` are the quotients at the
    ends of the interval, before that.
    """

    lines: tuple[Line, ...]
    bends: tuple[int, ...]
    starts: tuple[int, ...]
    low: int
    high: int
    least: int
    most: int
    turned: bool = False

    @property
    def bits(self) -> int:
        """Of the remainder."""
        return self.lines[0].bits


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
    t, j = starts[1:], values[1:]
    lines, shared = _lines(t, j, low, high)
    longest = max(
        (_size(line, max(-low, high)) for line in lines), default=MOST
    )
    if longest >= MOST:
        return None
    return Quotient(
        tuple(lines),
        tuple(int(j[place]) for place in shared),
        tuple(int(t[place]) for place in shared),
        int(values[0]),
        int(values[-1]),
        lines[0].at(low),
        lines[-1].at(high),
    )


def _size(line: Line, most: int) -> int:
    """No dividend is larger, for arguments of at most this size."""
    return abs(line.slope) * most + abs(line.offset)


def _lines(
    t: IntArray, j: IntArray, low: int, high: int
) -> tuple[list[Line], list[int]]:
    """The lines with the fewest rows, and the step that each shares with the next; no lines if there are none."""
    if len(t) == 1:
        return [_threshold(int(t[0]), int(j[0]), low, high)], []
    whole = _line(t, j)
    if whole is not None:
        return [whole], []
    found: tuple[list[Line], list[int]] = [], []
    fewest = MOST_ROWS
    for bits in BITS_TRIED:
        most = (fewest - bits) // ROWS_OF_BEND  # bends that would be cheaper
        lines, shared = _greedy(t, j, bits, most)
        if lines:
            found = lines, shared
            fewest = bits + ROWS_OF_BEND * len(shared)
    return found


def _greedy(
    t: IntArray, j: IntArray, bits: int, most: int
) -> tuple[list[Line], list[int]]:
    """Lines of so many bits, each as far as it goes; none if there would be more bends than `most`."""
    lines: list[Line] = []
    shared: list[int] = []
    first = 0
    while True:
        line, last = _longest(t, j, bits, first)
        if line is None:
            return [], []
        lines.append(line)
        if last == len(t) - 1:
            return lines, shared
        shared.append(last)
        first = last
        if len(shared) > most:
            return [], []


def _longest(
    t: IntArray, j: IntArray, bits: int, first: int
) -> tuple[Line | None, int]:
    """The line from a step on that reaches furthest, and the last step that it reaches."""
    reached, beyond = first, len(t)
    found = None
    step = 1
    while beyond - reached > 1:  # in growing steps, then by halving
        last = min(reached + step, beyond - 1)
        if beyond < len(t):
            last = (reached + beyond) // 2
        line = _line_of(t[first : last + 1], j[first : last + 1], bits)
        if line is None:
            beyond = last
        else:
            found, reached, step = line, last, 2 * step
    return found, reached


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
