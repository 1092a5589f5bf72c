"""Keeps what was computed of curves, to use it again.

The steps of an unrolled network need the same tables, and so do the programs of a
search for bits.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING, TypeVar

from cvm.program import IntArray
from mrt.quantize.tensor import Format, Interval

if TYPE_CHECKING:
    from mrt.quantize.curves.sampled_curve import SampledCurve

MOST_SAMPLED = 8
"""The most sampled curves that are kept, of 2 MB and more each.

Their intervals and tables are all kept, because they are small.
"""

Result = TypeVar("Result")


class CurveMemo:
    """Sampled curves, and their intervals and tables, by the curve's recipe and the integers it is sampled on."""

    def __init__(self) -> None:
        self._sampled: dict[Hashable, SampledCurve] = {}
        self._intervals: dict[Hashable, Interval] = {}
        self._entries: dict[Hashable, IntArray] = {}

    def of(
        self, key: Hashable, sample: Callable[[], SampledCurve]
    ) -> CurveResults:
        """Return the results of the curve with this key, which is sampled only for those not yet known."""
        return CurveResults(self, key, sample)

    def entries(
        self, key: Hashable, compute: Callable[[], IntArray]
    ) -> IntArray:
        """Return the integers of a table, computed at most once."""
        return _once(self._entries, key, compute)

    def interval(
        self, key: Hashable, compute: Callable[[], Interval]
    ) -> Interval:
        """Return the least and the greatest value of a curve, computed at most once."""
        return _once(self._intervals, key, compute)

    def sampled(
        self, key: Hashable, sample: Callable[[], SampledCurve]
    ) -> SampledCurve:
        """Return the curve at each integer; the most recently used ones are kept."""
        curve = self._sampled.pop(key, None)
        if curve is None:
            curve = sample()
        self._sampled[key] = curve
        if len(self._sampled) > MOST_SAMPLED:
            least_recent = next(iter(self._sampled))
            self._sampled.pop(least_recent)
        return curve


class CurveResults:
    """What is asked about one curve on the integers of its root."""

    def __init__(
        self,
        memo: CurveMemo,
        key: Hashable,
        sample: Callable[[], SampledCurve],
    ) -> None:
        self._memo, self._key, self._sample = memo, key, sample

    def interval(self) -> Interval:
        """Return the least and the greatest value; (0, 0) if the curve is defined nowhere."""
        return self._memo.interval(
            self._key, lambda: self._sampled().interval()
        )

    def is_integer(self) -> bool:
        """Whether all its values are integers."""
        return self._sampled().is_integer()

    def entries(self, target: Format) -> IntArray:
        """Return the values rounded to integers of a format."""
        return self._memo.entries(
            (self._key, target), lambda: self._sampled().entries(target)
        )

    def _sampled(self) -> SampledCurve:
        return self._memo.sampled(self._key, self._sample)


def _once(
    results: dict[Hashable, Result],
    key: Hashable,
    compute: Callable[[], Result],
) -> Result:
    if key not in results:
        results[key] = compute()
    return results[key]
