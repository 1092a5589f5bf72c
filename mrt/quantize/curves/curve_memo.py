"""Keeps computed curves, to use them again.

The steps of an unrolled network need the same tables, and so do the programs of a
search for bits.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING

from cvm.program import IntArray

if TYPE_CHECKING:
    from mrt.quantize.curves.sampled_curve import SampledCurve

MOST_SAMPLED = 8
"""The most sampled curves that are kept, of 2 MB and more each.

Tables are all kept, because they are small.
"""


class CurveMemo:
    """Sampled curves and tables, by the curve's recipe and the integers it is sampled on."""

    def __init__(self) -> None:
        self._sampled: dict[Hashable, SampledCurve] = {}
        self._entries: dict[Hashable, IntArray] = {}

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

    def entries(
        self, key: Hashable, compute: Callable[[], IntArray]
    ) -> IntArray:
        """Return the integers of a table, computed at most once."""
        if key not in self._entries:
            self._entries[key] = compute()
        return self._entries[key]
