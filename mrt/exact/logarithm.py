"""The natural logarithm with the same bits on every machine.

numpy's own, and that of a C library, differ in the last bit from one processor to another.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

# Both add up to ln 2; a multiple of the first by an exponent is exact.
LN2_HIGH = float.fromhex("0x1.62e42feep-1")
LN2_LOW = float.fromhex("0x1.a39ef35793c76p-33")
ROOT_HALF = 0.5**0.5
TERMS = 11  # of the series: s^22 < 2^-55


def logarithms(x: Floats) -> Floats:
    """Ln of numbers above 0, to two units in the last place.

    x is m * 2^e with m within sqrt(2) of 1. Then ln x = e ln 2 + 2 (s + s^3/3 + s^5/5 + ...)
    with s = (m - 1) / (m + 1); sums, products and quotients are rounded alike everywhere.
    """
    m, e = np.frexp(x)
    low = m < ROOT_HALF
    m, e = np.where(low, 2 * m, m), e - low
    s = (m - 1) / (m + 1)
    square = s * s
    series = np.zeros_like(s)
    for term in range(TERMS - 1, 0, -1):
        series += 1 / (2 * term + 1)
        series *= square
    small = 2 * s + (2 * s * series + e * LN2_LOW)
    return np.asarray(e * LN2_HIGH + small)
