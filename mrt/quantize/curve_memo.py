"""Tables of 65536 entries take seconds to compute and the steps of an unrolled network need the same few again and again."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from decimal import Decimal

from cvm.program import IntArray

Reals = dict[int, Decimal]
MOST_REALS = 8  # functions whose exact values are kept, of 10 MB each; tables themselves are part of the program


class CurveMemo:
    """What curves were found to be, by what they compute and on which integers."""

    def __init__(self) -> None:
        self._reals: dict[Hashable, Reals] = {}
        self._entries: dict[Hashable, IntArray] = {}

    def reals(self, key: Hashable, compute: Callable[[], Reals]) -> Reals:
        """The exact value at each integer; the functions used last are kept."""
        found = self._reals.pop(key, None)
        self._reals[key] = compute() if found is None else found
        if len(self._reals) > MOST_REALS:
            self._reals.pop(next(iter(self._reals)))
        return self._reals[key]

    def entries(self, key: Hashable, compute: Callable[[], IntArray]) -> IntArray:
        """The integers of a table."""
        if key not in self._entries:
            self._entries[key] = compute()
        return self._entries[key]
