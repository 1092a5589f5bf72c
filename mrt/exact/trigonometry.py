"""Circular and hyperbolic functions and their inverses, in decimal to 34 digits.

A result is NaN where the function is not defined.
"""

from __future__ import annotations

from decimal import Decimal

from mrt.exact.precision import (
    HALF,
    ONE,
    PI,
    PRECISION,
    TWO,
    ZERO,
    add,
    divide,
    exp,
    multiply,
    subtract,
)

TINY = Decimal("1e-36")
HALF_PI = divide(PI, TWO)
# Beyond it 34 digits do not determine the angle in a turn.
FARTHEST = Decimal("1e33")


def sine(x: Decimal) -> Decimal:
    """The Taylor series of an angle within a quarter of a turn.

    Full turns are subtracted first, and sin(pi - x) = sin(x) maps the far half to the near.
    """
    if x.copy_abs() > FARTHEST:
        return Decimal("NaN")
    turn = multiply(TWO, PI)
    turns = divide(x, turn).to_integral_value("ROUND_HALF_EVEN", PRECISION)
    x = subtract(x, multiply(turns, turn))
    if x.copy_abs() > HALF_PI:
        x = subtract(PI.copy_sign(x), x)
    square = multiply(x, x)
    term = total = x
    n = 1
    while term.copy_abs() > TINY:
        n += 2
        term = divide(multiply(term, square), Decimal(-n * (n - 1)))
        total = add(total, term)
    return total


def cosine(x: Decimal) -> Decimal:
    """sin(x + pi / 2)."""
    return sine(add(x, HALF_PI))


def tangent(x: Decimal) -> Decimal:
    """sin / cos."""
    return divide(sine(x), cosine(x))


def arc_tangent(x: Decimal) -> Decimal:
    """8 times the series of a number below 0.1.

    For |x| > 1 it is pi/2 - atan(1/x). Then atan(x) = 2 atan(x / (1 + sqrt(1 + x^2))) is
    applied three times.
    """
    if x.copy_abs() > 1:
        return subtract(HALF_PI.copy_sign(x), arc_tangent(divide(ONE, x)))
    for _ in range(3):
        root = PRECISION.sqrt(add(ONE, multiply(x, x)))
        x = divide(x, add(ONE, root))
    square = multiply(x, x)
    term = total = x
    n = 1
    while term.copy_abs() > TINY:
        n += 2
        term = multiply(term, square).copy_negate()
        total = add(total, divide(term, Decimal(n)))
    return multiply(Decimal(8), total)


def arc_sine(x: Decimal) -> Decimal:
    """atan(x / sqrt(1 - x^2))."""
    if x.copy_abs() > 1:
        return Decimal("NaN")
    if x.copy_abs() == 1:
        return HALF_PI.copy_sign(x)
    root = PRECISION.sqrt(subtract(ONE, multiply(x, x)))
    return arc_tangent(divide(x, root))


def arc_cosine(x: Decimal) -> Decimal:
    """pi / 2 - asin(x)."""
    return subtract(HALF_PI, arc_sine(x))


def hyperbolic_sine(x: Decimal) -> Decimal:
    """(e^x - e^-x) / 2."""
    return multiply(HALF, subtract(exp(x), exp(x.copy_negate())))


def hyperbolic_cosine(x: Decimal) -> Decimal:
    """(e^x + e^-x) / 2."""
    return multiply(HALF, add(exp(x), exp(x.copy_negate())))


def area_sine(x: Decimal) -> Decimal:
    """ln(|x| + sqrt(x^2 + 1)) with the sign of x."""
    size = x.copy_abs()
    root = PRECISION.sqrt(add(multiply(x, x), ONE))
    area = PRECISION.ln(add(size, root))
    return area.copy_negate() if x < ZERO else area


def area_cosine(x: Decimal) -> Decimal:
    """ln(x + sqrt(x^2 - 1))."""
    root = PRECISION.sqrt(subtract(multiply(x, x), ONE))
    return PRECISION.ln(add(x, root))


def area_tangent(x: Decimal) -> Decimal:
    """ln((1 + x) / (1 - x)) / 2."""
    quotient = divide(add(ONE, x), subtract(ONE, x))
    return multiply(HALF, PRECISION.ln(quotient))
