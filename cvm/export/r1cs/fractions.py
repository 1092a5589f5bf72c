"""The line with the smallest divisor that gives the quotients of another: floor((m * x + b) / d) for floor((M * x + B) / 2^k).

Over low..high the remainders of the given division, in units of 2^k, lie in least..most. A line that is nowhere further from the
given one than the room 1 - (most - least) gives the same quotients, if its offset is right. Of all slopes that are that near,
the one with the smallest denominator is found in the tree of Stern and Brocot.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from heapq import heapify, heappop, heappush
from math import ceil, floor

MOST_TRIED = 512  # nodes of the tree


@dataclass(frozen=True)
class Division:
    """floor((slope * x + offset) / step)."""

    slope: int
    offset: int
    step: int

    def at(self, x: int) -> int:
        """The quotient, rounded down."""
        return (self.slope * x + self.offset) // self.step

    def first(self, value: int) -> int:
        """The least argument of a rising line with at least this quotient."""
        return -((self.offset - value * self.step) // self.slope)


def divisions(given: Division, low: int, high: int) -> Iterator[Division]:
    """Divisions with the same quotients on low..high, of growing steps; the given one is the last."""
    slope, height = (
        Fraction(number, given.step) for number in (given.slope, given.offset)
    )
    least, most = (
        Fraction(remainder, given.step)
        for remainder in _remainders(given, low, high)
    )
    room = (1 - (most - least)) / max(high - low, 1)
    for near in _between(slope - room, slope + room, given.step):
        step = near.denominator
        tilts = (near - slope) * low, (near - slope) * high
        offset = ceil(step * (height - least - min(tilts)))
        greatest = floor(step * (max(tilts) - height + most)) + offset
        if greatest < step:
            yield Division(near.numerator, offset, step)
    yield given


def _remainders(given: Division, low: int, high: int) -> tuple[int, int]:
    """The least and the greatest remainder of the given division on low..high."""
    count, step = high - low + 1, given.step
    first = given.slope * low + given.offset
    least = _least_remainder(count, step, given.slope, first)
    # step - 1 - remainder is the remainder of the opposite line.
    opposite = _least_remainder(count, step, -given.slope, -first - 1)
    return least, step - 1 - opposite


def _least_remainder(count: int, step: int, slope: int, offset: int) -> int:
    """The least (slope * i + offset) mod step for 0 <= i < count, by halving."""
    slope, offset = slope % step, offset % step
    total = _floor_sum(count, step, slope, offset)
    least, most = 0, step - 1
    while least < most:
        middle = (least + most) // 2
        # A remainder of at most `middle` falls below a multiple if it is lowered by one more.
        lowered = _floor_sum(count, step, slope, offset - middle - 1)
        if lowered < total:
            most = middle
        else:
            least = middle + 1
    return least


def _floor_sum(count: int, step: int, slope: int, offset: int) -> int:
    """The sum of floor((slope * i + offset) / step) for 0 <= i < count."""
    total = 0
    while True:
        total += (slope // step) * count * (count - 1) // 2
        total += (offset // step) * count
        slope, offset = slope % step, offset % step
        last = slope * count + offset
        if last < step:
            return total
        # Count the points below the line by rows in place of columns.
        count, offset = last // step, last % step
        step, slope = slope, step


def _between(low: Fraction, high: Fraction, most: int) -> Iterator[Fraction]:
    """Fractions strictly between two numbers, of growing denominators below `most`."""
    simplest = _simplest(low, high)
    p, q = simplest.numerator, simplest.denominator
    below = pow(p, -1, q) if q > 1 else 1
    left = ((p * below - 1) // q, below)
    right = (p - left[0], q - left[1])
    yield simplest
    waiting = [(q + left[1], left, (p, q)), (q + right[1], (p, q), right)]
    heapify(waiting)
    for _ in range(MOST_TRIED):
        step, left, right = heappop(waiting)
        if step >= most:
            return
        middle = (left[0] + right[0], step)
        near = Fraction(*middle)
        if near > low:
            heappush(waiting, (left[1] + step, left, middle))
        if near < high:
            heappush(waiting, (step + right[1], middle, right))
        if low < near < high:
            yield near


def _simplest(low: Fraction, high: Fraction) -> Fraction:
    """The fraction with the smallest denominator strictly between two numbers."""
    integer = floor(low)
    if integer + 1 < high:
        return Fraction(integer + 1)
    if low == integer:  # above it lie integer + 1 / n
        return integer + Fraction(1, floor(1 / (high - integer)) + 1)
    # Both lie in integer..integer + 1: the same question of their inverses.
    return integer + 1 / _simplest(1 / (high - integer), 1 / (low - integer))
