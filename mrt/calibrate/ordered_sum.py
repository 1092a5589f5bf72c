"""Sums of floats in the order of the samples, also where blocks of samples are summed elsewhere.

Sums of floats depend on the order. So what a block of samples adds is kept as its terms,
and blocks that are merged in their order give the sum that one machine computes.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]


class OrderedSum:
    """A sum of arrays of one shape; of a block of samples, the terms of a later sum."""

    def __init__(self, *, of_block: bool = False) -> None:
        self._total: Floats | None = None
        self._terms: list[Floats] | None = [] if of_block else None

    def add(self, term: Floats) -> None:
        """Add one term, or note it."""
        if self._terms is not None:
            self._terms.append(term)
        elif self._total is None:
            self._total = term
        else:
            self._total = self._total + term

    def merge(self, block: OrderedSum) -> None:
        """Add the terms of a block, in their order."""
        for term in block._terms or ():
            self.add(term)

    @property
    def total(self) -> Floats | None:
        """The sum; None without terms."""
        return self._total
