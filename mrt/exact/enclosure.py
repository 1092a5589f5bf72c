"""Encloses many real numbers at once between two float64 numbers each.

That is enough to round nearly all of them. Every bound is moved outward by far more
than the error of a C library or a vector unit. So the library that computed a bound can
change how many numbers stay in doubt, but never the integer to which a number rounds.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import reduce

import numpy as np
import numpy.typing as npt

from cvm.program import IntArray
from mrt.exact.fixed_point import FloatArray

Booleans = npt.NDArray[np.bool_]

MARGIN = 2.0**-40
"""Relative margin: 2^13 * 2^-53. Libraries and numpy's vector forms err by a few 2^-53."""

NEAR_ZERO = 2.0**-100
"""Absolute margin: the decimal forms keep 34 digits of terms near 1, even if these cancel."""

EXACT = 2.0**26
"""Sums and products of integers below it are exact, here and in decimal."""

GREATEST = float(np.finfo(np.float64).max)


@dataclass(frozen=True, eq=False)
class Enclosure:
    """Numbers in `low` .. `high`, bounds included.

    Equal bounds are exactly the number; where both are NaN, the number is unknown. A
    number that is `undefined` certainly does not exist, and its bounds are NaN.
    """

    low: FloatArray
    high: FloatArray
    undefined: Booleans | np.bool_ = np.False_

    @classmethod
    def of(cls, numbers: npt.ArrayLike) -> Enclosure:
        """Enclose exactly these numbers."""
        exact = np.asarray(numbers, np.float64)
        return cls(exact, exact)

    @property
    def bounds(self) -> tuple[FloatArray, ...]:
        """Both bounds; only one if they are the same array."""
        if self.low is self.high:
            return (self.low,)
        return self.low, self.high

    @property
    def unknown(self) -> Booleans:
        """Where a number is unknown, including whether it exists."""
        return np.isnan(self.low)

    @property
    def integral(self) -> Booleans:
        """Where it is exactly one integer, of at most 26 bits."""
        is_exact = np.equal(self.low, self.high)
        is_integer = np.equal(np.floor(self.low), self.low)
        return is_exact & (np.abs(self.low) < EXACT) & is_integer

    @property
    def _zero(self) -> Booleans:
        return np.equal(self.low, 0) & np.equal(self.high, 0)

    def __neg__(self) -> Enclosure:
        return Enclosure(-self.high, -self.low)

    def __abs__(self) -> Enclosure:
        least = np.maximum(np.maximum(self.low, -self.high), 0.0)
        return Enclosure(least, np.maximum(-self.low, self.high))

    def __add__(self, other: Enclosure) -> Enclosure:
        exact = self.integral & other.integral
        return outward(self.low + other.low, self.high + other.high, exact)

    def __sub__(self, other: Enclosure) -> Enclosure:
        return self + -other

    def __mul__(self, other: Enclosure) -> Enclosure:
        low, high = _extremes(np.multiply, self, other)
        exact = (self.integral & other.integral) | self._zero | other._zero
        product = outward(low, high, exact)
        # Decimals keep the sign of a product, however small it is.
        same = _both_from_zero(self, other) | _both_from_zero(-self, -other)
        opposite = _both_from_zero(self, -other) | _both_from_zero(-self, other)
        least = np.where(same, np.maximum(product.low, 0.0), product.low)
        most = np.where(opposite, np.minimum(product.high, 0.0), product.high)
        return Enclosure(least, most)

    def __truediv__(self, other: Enclosure) -> Enclosure:
        low, high = _extremes(np.divide, self, other)
        divides = np.fmod(self.low, other.low) == 0
        exact = self.integral & other.integral & divides
        never_zero = (other.low > 0) | (other.high < 0)
        return outward(low, high, exact).where(never_zero)

    def at_least(self, other: Enclosure) -> Enclosure:
        """Return the greater of two."""
        low = np.maximum(self.low, other.low)
        return Enclosure(low, np.maximum(self.high, other.high))

    def at_most(self, other: Enclosure) -> Enclosure:
        """Return the lesser of two."""
        low = np.minimum(self.low, other.low)
        return Enclosure(low, np.minimum(self.high, other.high))

    def within(self, low: float, high: float) -> Enclosure:
        """Return the same numbers, which are proven to lie in this interval."""
        return Enclosure(
            np.clip(self.low, low, high), np.clip(self.high, low, high)
        )

    def where(self, condition: Booleans) -> Enclosure:
        """Return the same numbers where the condition is true; elsewhere they become unknown."""
        low = np.where(condition, self.low, np.nan)
        return Enclosure(low, np.where(condition, self.high, np.nan))

    def defined(
        self, low: float, high: float, arguments: Enclosure
    ) -> Enclosure:
        """Mark values of a function as undefined where its arguments lie outside `low` .. `high`."""
        outside = (arguments.high < low) | (arguments.low > high)
        return Enclosure(self.low, self.high, outside)

    def steps(self, step: Callable[[FloatArray], FloatArray]) -> Enclosure:
        """Apply a function that never falls and is exact in float64, such as floor."""
        return Enclosure(step(self.low), step(self.high))

    def rising(
        self,
        function: Callable[[FloatArray], FloatArray],
        low: float = -np.inf,
        high: float = np.inf,
    ) -> Enclosure:
        """Apply a library's function that never falls and stays in `low` .. `high`."""
        return outward(function(self.low), function(self.high)).within(
            low, high
        )

    def wave(
        self, function: Callable[[FloatArray], FloatArray], limit: float
    ) -> Enclosure:
        """Apply sin or cos, whose slopes and values are within -1 .. 1.

        Numbers beyond `limit` become unknown.
        """
        error = self.high - self.low + MARGIN
        value = function(self.low)
        enclosed = outward(value - error, value + error)
        return enclosed.where(np.abs(self.low) < limit)

    def greater(self, other: Enclosure) -> Enclosure:
        """1 where this is greater, else 0."""
        return boolean(self.low > other.high, self.high > other.low)

    def not_less(self, other: Enclosure) -> Enclosure:
        """1 where this is not less, else 0."""
        return boolean(self.low >= other.high, self.high >= other.low)

    def equal(self, other: Enclosure) -> Enclosure:
        """1 where both are equal, else 0."""
        both_exact = (self.low == self.high) & (other.low == other.high)
        certain = both_exact & (self.low == other.low)
        possible = (self.low <= other.high) & (other.low <= self.high)
        return boolean(certain, possible)

    def is_true(self) -> Enclosure:
        """1 where this is not 0, else 0."""
        return boolean((self.low > 0) | (self.high < 0), ~self._zero)

    def choose(self, yes: Enclosure, no: Enclosure) -> Enclosure:
        """`yes` where this is not 0, else `no`; where that is in doubt, both.

        Undefined where this is, or what is chosen.
        """
        condition = self.is_true()
        certain, possible = condition.low > 0, condition.high > 0
        either_low = np.minimum(yes.low, no.low)
        either_high = np.maximum(yes.high, no.high)
        low_if_not_certain = np.where(possible, either_low, no.low)
        high_if_not_certain = np.where(possible, either_high, no.high)
        low = np.where(certain, yes.low, low_if_not_certain)
        high = np.where(certain, yes.high, high_if_not_certain)
        neither = np.logical_and(yes.undefined, no.undefined)
        of_no = np.where(possible, neither, no.undefined)
        undefined = np.where(certain, yes.undefined, of_no) | self.undefined
        enclosure = Enclosure(low, high).where(~(self.unknown | undefined))
        return replace(enclosure, undefined=undefined)


def outward(
    low: FloatArray, high: FloatArray, exact: npt.ArrayLike = False
) -> Enclosure:
    """Move bounds that float64 or a library rounded outward, unless they are exact.

    A result beyond the greatest float64 stays enclosed: `low` is at most that number.
    """
    low, high = np.minimum(low, GREATEST), np.maximum(high, -GREATEST)
    margin_below = np.abs(low) * MARGIN + NEAR_ZERO
    margin_above = np.abs(high) * MARGIN + NEAR_ZERO
    below = np.where(exact, low, low - margin_below)
    above = np.where(exact, high, high + margin_above)
    # A number is unknown where a bound is NaN or both are infinite.
    is_known = np.isfinite(np.maximum(below, -above))
    return Enclosure(below, above).where(is_known)


def near(number: float) -> Enclosure:
    """Enclose a constant that float64 rounds."""
    return outward(np.array(number), np.array(number))


def boolean(certain: Booleans, possible: Booleans) -> Enclosure:
    """Return 1 where it is certain, 0 where it is not possible, 0 .. 1 elsewhere."""
    return Enclosure(certain.astype(np.float64), possible.astype(np.float64))


def rounded(
    numbers: Enclosure, least: int, most: int, exactly: Callable[[int], int]
) -> IntArray:
    """Return the nearest integers, half up and saturated; `least` where a number is undefined.

    Where both bounds round to one integer, that integer is certain; else `exactly`
    computes it from the index of the number.
    """
    plus_half = numbers + Enclosure.of(0.5)
    low = np.clip(np.floor(plus_half.low), least, most)
    high = np.clip(np.floor(plus_half.high), least, most)
    certain = low == high
    integers = np.where(certain, low, least).astype(np.int64)
    for index in np.flatnonzero(~(certain | numbers.undefined)):
        integers[index] = exactly(int(index))
    return integers


def _both_from_zero(x: Enclosure, y: Enclosure) -> Booleans:
    """Where neither of two numbers is less than 0."""
    return (x.low >= 0) & (y.low >= 0)


def _extremes(
    operation: Callable[[FloatArray, FloatArray], FloatArray],
    x: Enclosure,
    y: Enclosure,
) -> tuple[FloatArray, FloatArray]:
    """Return the least and the greatest result for any two bounds."""
    corners = [operation(a, b) for a in x.bounds for b in y.bounds]
    return reduce(np.minimum, corners), reduce(np.maximum, corners)
