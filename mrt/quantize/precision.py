"""Decimal arithmetic to 34 digits, the same on every machine.

Python's own operators round to whatever context the caller has set, so they are not used: PRECISION's methods are.
"""

from __future__ import annotations

from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal

PRECISION = Context(prec=34, Emax=MAX_EMAX, Emin=MIN_EMIN, traps=[])
ZERO, ONE, HALF, TWO = Decimal(0), Decimal(1), Decimal("0.5"), Decimal(2)
PI = Decimal("3.14159265358979323846264338327950288419716939937510582")
EXP_REACH = Decimal(100000)  # beyond, exp is 0 or infinity for any scale

add, subtract, multiply, divide = PRECISION.add, PRECISION.subtract, PRECISION.multiply, PRECISION.divide


def exp(x: Decimal) -> Decimal:
    """e^x; 0 or infinity far out."""
    if x < -EXP_REACH:
        return ZERO
    return Decimal("Infinity") if x > EXP_REACH else PRECISION.exp(x)
