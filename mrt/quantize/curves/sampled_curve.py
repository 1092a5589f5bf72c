"""A curve on every integer of its root.

Each of 65,536 values is enclosed; those of which that leaves a doubt are computed to 34 digits, a thousand times as slowly.
The results are those of computing all so.
"""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal

import numpy as np
import numpy.typing as npt

from cvm.program import DTYPES, IntArray
from mrt.exact.enclosure import NEAR_ZERO, Enclosure, rounded
from mrt.exact.fixed_point import FloatArray
from mrt.exact.precision import HALF, ONE, PRECISION, add, divide, multiply
from mrt.quantize.curves.curve import Curve
from mrt.quantize.tensor import Format, Interval

ERROR = Decimal(NEAR_ZERO)


class SampledCurve:
    """The curve at scale * (integer - zero_point) for consecutive integers."""

    def __init__(
        self, curve: Curve, scale: float, zero_point: int, integers: IntArray
    ) -> None:
        self._curve, self._scale, self._steps = (
            curve,
            Decimal(scale),
            integers - zero_point,
        )
        self._enclosed = curve.enclosed(Enclosure.of(scale) * Enclosure.of(self._steps))
        self._computed: dict[int, Decimal] = {}

    def exactly(self, place: int) -> Decimal:
        """To 34 digits; NaN where the curve is no number."""
        if place not in self._computed:
            real = multiply(self._scale, Decimal(int(self._steps[place])))
            self._computed[place] = self._curve.exactly(real)
        return self._computed[place]

    def ends(self) -> Interval:
        """The least and the greatest of its numbers, infinities included, to the nearest float64; 0 and 0 if it has none."""
        low, high = self._enclosed.low, self._enclosed.high
        return -self._greatest(-high, -low, -1), self._greatest(low, high, 1)

    def is_integer(self) -> bool:
        """Whether all its numbers are whole."""
        low, high = self._enclosed.low, self._enclosed.high
        if bool(np.any(np.floor(high) < np.ceil(low))):
            return False
        numbers = (
            self.exactly(int(place))
            for place in np.flatnonzero(~((low == high) | self._enclosed.undefined))
        )
        return all(
            number.is_nan() or number == number.to_integral_value()
            for number in numbers
        )

    def entries(self, target: Format) -> IntArray:
        """Its values in a format: half up, saturated.

        Where it is no number, as Acosh is right below 1, that of the nearest integer where it is one, which is what rounding
        came from; if it is none anywhere, the least.
        """
        least, most = target.least - target.zero_point, target.most - target.zero_point
        with np.errstate(all="ignore"):
            steps = replace(
                self._enclosed / Enclosure.of(target.scale),
                undefined=self._enclosed.undefined,
            )
        entries = rounded(
            steps,
            least,
            most,
            lambda place: _nearest(self.exactly(place), target.scale, least, most),
        )
        entries = (entries + target.zero_point).astype(DTYPES[target.dtype])
        numbers = ~self._enclosed.unknown
        numbers[
            [place for place, number in self._computed.items() if not number.is_nan()]
        ] = True
        return entries[_nearest_places(numbers)]

    def _greatest(self, low: FloatArray, high: FloatArray, sign: int) -> float:
        """Of the numbers times `sign`: computed are those that no other is certain to exceed, from the outermost inwards."""
        exact = low == high
        best = low[exact].max(initial=-np.inf) if exact.any() else np.nan
        candidates = np.flatnonzero(
            ~(exact | self._enclosed.undefined | (high < np.fmax.reduce(low)))
        )
        most = high[candidates].max(initial=-np.inf)
        if self._curve.rises and candidates.size:
            most = np.fmin(most, self._highest(sign))
        for place in candidates[
            np.argsort(np.minimum(candidates, low.size - 1 - candidates), kind="stable")
        ]:
            if best >= most:
                break
            best = np.fmax(best, sign * float(self.exactly(int(place))))
        return 0.0 if np.isnan(best) else float(best)

    def _highest(self, sign: int) -> float:
        """What no number times `sign` of a rising curve exceeds: the last or first with what decimal forms err. Or NaN.

        It saves all the numbers that saturate within a margin of each other.
        """
        end = self.exactly(self._steps.size - 1 if sign > 0 else 0)
        error = multiply(ERROR, add(ONE, end.copy_abs()))
        return float(add(end if sign > 0 else end.copy_negate(), error))


def _nearest(real: Decimal, scale: float, least: int, most: int) -> int:
    """Half up, saturated; where the function is no number, the least integer."""
    if real.is_nan():
        return least
    if real.is_infinite():
        return most if real > 0 else least
    steps = add(divide(real, Decimal(scale)), HALF).to_integral_value(
        "ROUND_FLOOR", PRECISION
    )
    return int(min(max(steps, Decimal(least)), Decimal(most)))


def _nearest_places(numbers: npt.NDArray[np.bool_]) -> IntArray:
    """For every place the nearest of those that are set, of two the earlier; if none is, itself."""
    places, known = np.arange(numbers.size), np.flatnonzero(numbers)
    if known.size in (0, places.size):
        return places
    behind = np.searchsorted(known, places).clip(0, known.size - 1)
    before, after = known[np.maximum(behind - 1, 0)], known[behind]
    nearest: IntArray = np.where(places - before <= after - places, before, after)
    return nearest
