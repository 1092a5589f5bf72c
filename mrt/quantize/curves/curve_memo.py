"""The steps of an unrolled network need the same few tables again and again, and a search for bits the same many."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING

from cvm.program import IntArray

if TYPE_CHECKING:
    from mrt.quantize.curves.sampled_curve import SampledCurve

MOST_SAMPLED = 8  # curves that are kept as sampled, of 2 MB and more each; tables themselves are part of the program


class CurveMemo:
    """What curves were found to be, by what they compute and on which integers."""

    def __init__(self) -> None:
        self._sampled: dict[Hashable, SampledCurve] = {}
        self._entries: dict[Hashable, IntArray] = {}

    def sampled(
        self, key: Hashable, sample: Callable[[], SampledCurve]
    ) -> SampledCurve:
        """The curve at each integer; those used last are kept."""
        found = self._sampled.pop(key, None)
        self._sampled[key] = sample() if found is None else found
        if len(self._sampled) > MOST_SAMPLED:
            self._sampled.pop(next(iter(self._sampled)))
        return self._sampled[key]

    def entries(self, key: Hashable, compute: Callable[[], IntArray]) -> IntArray:
        """The integers of a table."""
        if key not in self._entries:
            self._entries[key] = compute()
        return self._entries[key]
