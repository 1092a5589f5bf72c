"""Decimal arithmetic to 34 digits, the same on every machine.

Python's own operators round to whatever context the caller has set, so they are not used: PRECISION's methods are.
"""

from __future__ import annotations

from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal
from functools import lru_cache

PRECISION = Context(prec=34, Emax=MAX_EMAX, Emin=MIN_EMIN, traps=[])
ZERO, ONE, HALF, TWO = Decimal(0), Decimal(1), Decimal("0.5"), Decimal(2)
PI = Decimal("3.14159265358979323846264338327950288419716939937510582")
EXP_REACH = Decimal(100000)  # beyond, exp is 0 or infinity for any scale

add, subtract, multiply, divide = (
    PRECISION.add,
    PRECISION.subtract,
    PRECISION.multiply,
    PRECISION.divide,
)

FINE = Decimal(
    8192
)  # steps in 1; of every 128th, and of the first 128, powers of e are kept
STEP = PRECISION.divide(ONE, FINE)  # exact
NEAR, NEAR_BELOW = (
    Decimal(128),
    Decimal(-128),
)  # beyond, a table needs few of them, and keeping them would cost more
TERMS = tuple(
    PRECISION.divide(ONE, Decimal(factorial))
    for factorial in (5040, 720, 120, 24, 6, 2, 1, 1)
)


def exp(x: Decimal) -> Decimal:
    """e^x to 33 digits; 0 or infinity far out.

    Near 0 it is the product of e^(a/64), e^(b/8192) and eight terms of the series: faster than the whole series.
    """
    if not NEAR_BELOW < x < NEAR:
        return (
            ZERO
            if x < -EXP_REACH
            else Decimal("Infinity")
            if x > EXP_REACH
            else PRECISION.exp(x)
        )
    steps = int(multiply(x, FINE).to_integral_value("ROUND_HALF_EVEN", PRECISION))
    whole, rest = steps >> 7, steps & 127
    x = subtract(x, multiply(Decimal(steps), STEP))
    total = TERMS[0]
    for term in TERMS[1:]:
        total = PRECISION.fma(total, x, term)
    return multiply(multiply(_power_of_e(whole << 7), _power_of_e(rest)), total)


@lru_cache(maxsize=1 << 15)
def _power_of_e(steps: int) -> Decimal:
    return PRECISION.exp(multiply(Decimal(steps), STEP))
