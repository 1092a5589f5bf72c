"""Functions in decimal, against published digits."""

from decimal import Decimal

import pytest

from mrt.quantize import functions

DIGITS = Decimal("1e-28")


@pytest.mark.parametrize(
    ("found", "published"),
    [
        (functions.exp(Decimal(1)), "2.7182818284590452353602874713527"),
        (functions.sigmoid(Decimal(1)), "0.73105857863000487925115924182184"),
        (functions.sigmoid(Decimal(-200000)), "0"),
        (functions.tanh(Decimal(1)), "0.76159415595576488811945828260479"),
        (functions.tanh(Decimal(-100000)), "-1"),
        (functions.softplus(Decimal(0)), "0.69314718055994530941723212145818"),
        (functions.softplus(Decimal(5000)), "5000"),
        (functions.erf(Decimal(1)), "0.84270079294971486934122063508261"),
        (functions.erf(Decimal("-0.5")), "-0.52049987781304653768274665389197"),
        (functions.erf(Decimal(3)), "0.99997790950300141455862722387042"),
        (functions.erf(Decimal(-50)), "-1"),
        (functions.gelu(Decimal(1), "none"), "0.84134474606854294858523254563204"),
        (functions.elu(Decimal(-1), Decimal(2)), "-1.26424111765711535680895245967708"),
        (functions.hard_sigmoid(Decimal(1), Decimal("0.25"), Decimal("0.5")), "0.75"),
        (functions.power(Decimal("1.5"), Decimal(3)), "3.375"),
        (functions.power(Decimal(2), Decimal("0.5")), "1.4142135623730950488016887242097"),
        (functions.power(Decimal(-2), Decimal(-1)), "-0.5"),
    ],
)
def test_the_digits_are_right(found, published):
    assert abs(found - Decimal(published)) < DIGITS


@pytest.mark.parametrize(
    "found",
    [
        functions.power(Decimal(-2), Decimal("0.5")),
        functions.UNARY["Log"](None, Decimal(-1)),
        functions.UNARY["Sqrt"](None, Decimal(-1)),
    ],
)
def test_what_is_no_number_is_nan(found):
    assert found.is_nan()


def test_log_of_zero_is_minus_infinity():
    assert functions.UNARY["Log"](None, Decimal(0)) == Decimal("-Infinity")
