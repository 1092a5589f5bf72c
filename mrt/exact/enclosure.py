"""Real numbers known to lie between two float64 numbers, many at once: enough to round nearly all of them beyond doubt.

Every end is moved outward by far more than a C library or a vector unit errs. So which of them computed an end can change
how many numbers remain in doubt, never to what integer a number rounds.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce

import numpy as np
import numpy.typing as npt

from cvm.program import IntArray
from mrt.exact.fixed_point import FloatArray

Booleans = npt.NDArray[np.bool_]

MARGIN = (
    2.0**-40
)  # of an end: 2^13 times 2^-53, of which libraries and numpy's vector forms err by a few
NEAR_ZERO = (
    2.0**-100
)  # the decimal forms take 34 digits of terms about as large as 1, whatever is left of these
EXACT = (
    2.0**26
)  # sums and products of whole numbers below it are exact, here and in decimal
GREATEST = float(np.finfo(np.float64).max)


@dataclass(frozen=True, eq=False)
class Enclosure:
    """Numbers in `low` .. `high`, ends included: where both are equal exactly that, where both are NaN nothing is known.

    Of what is `undefined` it is known that it is no number; its ends are NaN.
    """

    low: FloatArray
    high: FloatArray
    undefined: Booleans | np.bool_ = np.False_

    @classmethod
    def of(cls, numbers: npt.ArrayLike) -> Enclosure:
        """Exactly these."""
        exact = np.asarray(numbers, np.float64)
        return cls(exact, exact)

    @property
    def ends(self) -> tuple[FloatArray, ...]:
        """Both, or what it is exactly."""
        return (self.low,) if self.low is self.high else (self.low, self.high)

    @property
    def unknown(self) -> Booleans:
        """Where a number may be anything, or none."""
        return np.isnan(self.low)

    @property
    def integral(self) -> Booleans:
        """Where it is exactly one whole number, not too large."""
        return (
            np.equal(self.low, self.high)
            & (np.abs(self.low) < EXACT)
            & np.equal(np.floor(self.low), self.low)
        )

    @property
    def _zero(self) -> Booleans:
        return np.equal(self.low, 0) & np.equal(self.high, 0)

    def __neg__(self) -> Enclosure:
        return Enclosure(-self.high, -self.low)

    def __abs__(self) -> Enclosure:
        least = np.maximum(np.maximum(self.low, -self.high), 0.0)
        return Enclosure(least, np.maximum(-self.low, self.high))

    def __add__(self, other: Enclosure) -> Enclosure:
        return outward(
            self.low + other.low, self.high + other.high, self.integral & other.integral
        )

    def __sub__(self, other: Enclosure) -> Enclosure:
        return self + -other

    def __mul__(self, other: Enclosure) -> Enclosure:
        exact = (self.integral & other.integral) | self._zero | other._zero
        return outward(*_extremes(np.multiply, self, other), exact)

    def __truediv__(self, other: Enclosure) -> Enclosure:
        low, high = _extremes(np.divide, self, other)
        exact = self.integral & other.integral & (np.fmod(self.low, other.low) == 0)
        return outward(low, high, exact).known((other.low > 0) | (other.high < 0))

    def at_least(self, other: Enclosure) -> Enclosure:
        """The greater of two."""
        return Enclosure(
            np.maximum(self.low, other.low), np.maximum(self.high, other.high)
        )

    def at_most(self, other: Enclosure) -> Enclosure:
        """The less of two."""
        return Enclosure(
            np.minimum(self.low, other.low), np.minimum(self.high, other.high)
        )

    def within(self, low: float, high: float) -> Enclosure:
        """The same numbers, which are proven not to lie beyond."""
        return Enclosure(np.clip(self.low, low, high), np.clip(self.high, low, high))

    def known(self, where: Booleans) -> Enclosure:
        """The same there; elsewhere nothing."""
        return Enclosure(
            np.where(where, self.low, np.nan), np.where(where, self.high, np.nan)
        )

    def defined(self, low: float, high: float, of: Enclosure) -> Enclosure:
        """The same, a function of numbers that is none of those certain to lie beyond these."""
        return Enclosure(self.low, self.high, (of.high < low) | (of.low > high))

    def steps(self, step: Callable[[FloatArray], FloatArray]) -> Enclosure:
        """A function that never falls and is exact in float64, such as floor."""
        return Enclosure(step(self.low), step(self.high))

    def rising(
        self,
        function: Callable[[FloatArray], FloatArray],
        low: float = -np.inf,
        high: float = np.inf,
    ) -> Enclosure:
        """A function that never falls, nor leaves `low` .. `high`, as a library computes it."""
        return outward(function(self.low), function(self.high)).within(low, high)

    def wave(
        self, function: Callable[[FloatArray], FloatArray], reach: float
    ) -> Enclosure:
        """A function of slopes within -1 .. 1 and of values near 1, of numbers within `reach`."""
        off = self.high - self.low + MARGIN
        value = function(self.low)
        return outward(value - off, value + off).known(np.abs(self.low) < reach)

    def greater(self, other: Enclosure) -> Enclosure:
        """1 where it is, 0 where it is not."""
        return boolean(self.low > other.high, self.high > other.low)

    def not_less(self, other: Enclosure) -> Enclosure:
        """1 where it is not, 0 where it is."""
        return boolean(self.low >= other.high, self.high >= other.low)

    def equal(self, other: Enclosure) -> Enclosure:
        """1 where it is, 0 where it is not."""
        same = (
            (self.low == self.high)
            & (other.low == other.high)
            & (self.low == other.low)
        )
        return boolean(same, (self.low <= other.high) & (other.low <= self.high))

    def is_true(self) -> Enclosure:
        """1 where it is not 0."""
        return boolean((self.low > 0) | (self.high < 0), ~self._zero)

    def choose(self, yes: Enclosure, no: Enclosure) -> Enclosure:
        """`yes` where this is not 0, else `no`; where that is in doubt, both."""
        booleans = self.is_true()
        low = np.where(
            booleans.low > 0,
            yes.low,
            np.where(booleans.high > 0, np.minimum(yes.low, no.low), no.low),
        )
        high = np.where(
            booleans.low > 0,
            yes.high,
            np.where(booleans.high > 0, np.maximum(yes.high, no.high), no.high),
        )
        return Enclosure(low, high)


def outward(
    low: FloatArray, high: FloatArray, exact: npt.ArrayLike = False
) -> Enclosure:
    """Ends that float64 or a library rounded: what lay beyond float64's reach lies beyond it still."""
    low, high = np.minimum(low, GREATEST), np.maximum(high, -GREATEST)
    below = np.where(exact, low, low - (np.abs(low) * MARGIN + NEAR_ZERO))
    above = np.where(exact, high, high + (np.abs(high) * MARGIN + NEAR_ZERO))
    says_something = np.isfinite(
        np.maximum(below, -above)
    )  # is no NaN, nor would any number do
    return Enclosure(below, above).known(says_something)


def near(number: float) -> Enclosure:
    """A constant that float64 rounds."""
    return outward(np.array(number), np.array(number))


def boolean(certain: Booleans, possible: Booleans) -> Enclosure:
    """1 where it is certain, 0 where it is not even possible."""
    return Enclosure(certain.astype(np.float64), possible.astype(np.float64))


def rounded(
    numbers: Enclosure, least: int, most: int, exactly: Callable[[int], int]
) -> IntArray:
    """The nearest integers, half up and saturated; of a number in doubt what `exactly` says, which is given its place.

    Where there is certainly no number, the least.
    """
    halves = numbers + Enclosure.of(0.5)
    low, high = (
        np.clip(np.floor(end), least, most) for end in (halves.low, halves.high)
    )
    integers = np.where(low == high, low, least).astype(np.int64)
    for place in np.flatnonzero(~((low == high) | numbers.undefined)):
        integers[place] = exactly(int(place))
    return integers


def _extremes(
    operation: Callable[[FloatArray, FloatArray], FloatArray],
    x: Enclosure,
    y: Enclosure,
) -> tuple[FloatArray, FloatArray]:
    """The least and the greatest of what two ends give."""
    corners = [operation(a, b) for a in x.ends for b in y.ends]
    return reduce(np.minimum, corners), reduce(np.maximum, corners)
