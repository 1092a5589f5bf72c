"""Samples a curve on every integer of its root.

Each of 65,536 values is enclosed. A few enclosures are too wide to round: these values
are computed to 34 digits, which takes a thousand times as long. The results are the
same as if all were computed to 34 digits.
"""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal

import numpy as np
import numpy.typing as npt

from cvm.program import DTYPES, IntArray
from mrt.exact.enclosure import NEAR_ZERO, Enclosure, rounded
from mrt.exact.fixed_point import FloatArray
from mrt.exact.precision import ONE, add, divide, multiply, round_half_up
from mrt.quantize.curves.curve import Curve
from mrt.quantize.tensor import Format, Interval

ERROR = Decimal(NEAR_ZERO)
"""Absolute and relative error of a decimal form, with a margin."""


class SampledCurve:
    """The curve at scale * (integer - zero_point) for consecutive integers."""

    def __init__(
        self, curve: Curve, scale: float, zero_point: int, integers: IntArray
    ) -> None:
        self._curve = curve
        self._scale = Decimal(scale)
        self._steps = integers - zero_point
        reals = Enclosure.of(scale) * Enclosure.of(self._steps)
        self._enclosed = curve.enclosed(reals)
        self._computed: dict[int, Decimal] = {}
        self._interval: Interval | None = None

    def exactly(self, index: int) -> Decimal:
        """Return one value to 34 digits; NaN where the curve is undefined."""
        if index not in self._computed:
            real = multiply(self._scale, Decimal(int(self._steps[index])))
            self._computed[index] = self._curve.exactly(real)
        return self._computed[index]

    def interval(self) -> Interval:
        """Return the least and the greatest value, infinities included, as the nearest float64.

        (0, 0) if the curve is defined nowhere.
        """
        if self._interval is None:
            low, high = self._enclosed.low, self._enclosed.high
            least = -self._greatest(-high, -low, -1)
            self._interval = least, self._greatest(low, high, 1)
        return self._interval

    def is_integer(self) -> bool:
        """Whether all its values are integers."""
        low, high = self._enclosed.low, self._enclosed.high
        contains_no_integer = np.floor(high) < np.ceil(low)
        if bool(np.any(contains_no_integer)):
            return False
        in_doubt = ~((low == high) | self._enclosed.undefined)
        for index in np.flatnonzero(in_doubt):
            value = self.exactly(int(index))
            if not value.is_nan() and value != value.to_integral_value():
                return False
        return True

    def entries(self, target: Format) -> IntArray:
        """Round the values to integers of a format: half up, saturated.

        Where the curve is undefined (Acosh just below 1, reached only because the
        operand was rounded), the entry is that of the nearest integer at which it is
        defined. If it is defined nowhere, the entries are the least integer of the
        format.
        """
        least = target.least - target.zero_point
        most = target.most - target.zero_point
        with np.errstate(all="ignore"):
            quotients = self._enclosed / Enclosure.of(target.scale)
        steps = replace(quotients, undefined=self._enclosed.undefined)

        def exactly(index: int) -> int:
            return _nearest(self.exactly(index), target.scale, least, most)

        entries = rounded(steps, least, most, exactly)
        entries = (entries + target.zero_point).astype(DTYPES[target.dtype])
        return entries[_nearest_indices(self._defined())]

    def _defined(self) -> npt.NDArray[np.bool_]:
        """Where the curve is known to be defined, by enclosure or by computing it."""
        defined = ~self._enclosed.unknown
        for index, value in self._computed.items():
            if not value.is_nan():
                defined[index] = True
        return defined

    def _greatest(self, low: FloatArray, high: FloatArray, sign: int) -> float:
        """Return the greatest of sign * value; `low` and `high` enclose sign * value.

        A value is computed only if no other certainly exceeds it; the outermost come
        first.
        """
        exact = low == high
        best = low[exact].max(initial=-np.inf) if exact.any() else np.nan
        exceeded = high < np.fmax.reduce(low)
        candidates = np.flatnonzero(
            ~(exact | self._enclosed.undefined | exceeded)
        )
        most = high[candidates].max(initial=-np.inf)
        if self._curve.rises and candidates.size:
            most = np.fmin(most, self._upper_bound(sign))
        from_outside = np.minimum(candidates, low.size - 1 - candidates)
        for index in candidates[np.argsort(from_outside, kind="stable")]:
            if best >= most:
                break
            best = np.fmax(best, sign * float(self.exactly(int(index))))
        return 0.0 if np.isnan(best) else float(best)

    def _upper_bound(self, sign: int) -> float:
        """Return a number that sign * value of a rising curve never exceeds, or NaN.

        It is the value at the last (or first) integer plus the error of decimal forms.
        With it, values that saturate within a margin of each other need not all be
        computed.
        """
        outermost = self._steps.size - 1 if sign > 0 else 0
        value = self.exactly(outermost)
        error = multiply(ERROR, add(ONE, value.copy_abs()))
        signed = value if sign > 0 else value.copy_negate()
        return float(add(signed, error))


def _nearest(real: Decimal, scale: float, least: int, most: int) -> int:
    """Return real / scale, half up, saturated; `least` where the real is NaN."""
    if real.is_nan():
        return least
    if real.is_infinite():
        return most if real > 0 else least
    steps = round_half_up(divide(real, Decimal(scale)))
    return int(min(max(steps, Decimal(least)), Decimal(most)))


def _nearest_indices(defined: npt.NDArray[np.bool_]) -> IntArray:
    """Return the nearest defined index for each, the earlier of two; itself if none is defined."""
    indices, defined_indices = np.arange(defined.size), np.flatnonzero(defined)
    if defined_indices.size in (0, indices.size):
        return indices
    position = np.searchsorted(defined_indices, indices).clip(
        0, defined_indices.size - 1
    )
    before = defined_indices[np.maximum(position - 1, 0)]
    after = defined_indices[position]
    nearest: IntArray = np.where(
        indices - before <= after - indices, before, after
    )
    return nearest
