"""Cosines and sines of fractions of a turn, correctly rounded, for Fourier matrices."""

from __future__ import annotations

from decimal import Context, Decimal
from functools import lru_cache

import numpy as np
import numpy.typing as npt

Table = npt.NDArray[np.float64]

_CONTEXT = Context(prec=40)
_TURN = Decimal(
    "6.283185307179586476925286766559005768394338798750211641949889"
)
_TERMS = 40
"""Terms of a series for up to half a turn; the remainder is below 1e-20."""


@lru_cache(maxsize=16)
def cosines(parts: int) -> Table:
    """cos(2 pi k / parts) for k = 0 .. parts - 1."""
    table = np.array(
        [_cosine(min(part, parts - part), parts) for part in range(parts)]
    )
    table.setflags(write=False)
    return table


def sines(parts: int) -> Table:
    """sin(2 pi k / parts), which is the cosine a quarter of a turn before."""
    cosines_of_quarters = cosines(4 * parts)
    quarters = (4 * np.arange(parts) - parts) % (4 * parts)
    return cosines_of_quarters[quarters]


def _cosine(part: int, parts: int) -> float:
    """Return the Taylor series of cos(2 pi part / parts)."""
    if 4 * part == parts:
        return 0.0
    multiply, divide = _CONTEXT.multiply, _CONTEXT.divide
    x = divide(multiply(_TURN, Decimal(part)), Decimal(parts))
    square = multiply(x, x)
    term = total = Decimal(1)
    for step in range(1, _TERMS):
        divisor = Decimal(-(2 * step - 1) * (2 * step))
        term = divide(multiply(term, square), divisor)
        total = _CONTEXT.add(total, term)
    return float(total)
