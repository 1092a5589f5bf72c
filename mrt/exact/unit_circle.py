"""Cosines and sines of whole parts of a turn, correctly rounded: every machine makes the same matrix of them."""

from __future__ import annotations

from decimal import Context, Decimal
from functools import lru_cache

import numpy as np
import numpy.typing as npt

Table = npt.NDArray[np.float64]

_CONTEXT = Context(prec=40)
_TURN = Decimal("6.283185307179586476925286766559005768394338798750211641949889")
_TERMS = 40  # of a series at up to half a turn, until what is left is below 1e-20


@lru_cache(maxsize=16)
def cosines(parts: int) -> Table:
    """cos of 0, 1, .., parts - 1 of so many parts of a turn."""
    table = np.array([_cosine(min(part, parts - part), parts) for part in range(parts)])
    table.setflags(write=False)
    return table


def sines(parts: int) -> Table:
    """The same of sin, which is cos a quarter of a turn before."""
    quarters = cosines(4 * parts)
    return quarters[(4 * np.arange(parts) - parts) % (4 * parts)]


def _cosine(part: int, parts: int) -> float:
    c = _CONTEXT
    if 4 * part == parts:
        return 0.0
    x = c.divide(c.multiply(_TURN, Decimal(part)), Decimal(parts))
    square = c.multiply(x, x)
    term = total = Decimal(1)
    for step in range(1, _TERMS):
        term = c.divide(c.multiply(term, square), Decimal(-(2 * step - 1) * (2 * step)))
        total = c.add(total, term)
    return float(total)
