"""Functions in decimal, against published digits."""

from decimal import Decimal

import pytest

from mrt.exact import functions, precision, trigonometry

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
        (
            functions.gelu(Decimal(1), "none"),
            "0.84134474606854294858523254563204",
        ),
        (
            functions.elu(Decimal(-1), Decimal(2)),
            "-1.26424111765711535680895245967708",
        ),
        (
            functions.hard_sigmoid(Decimal(1), Decimal("0.25"), Decimal("0.5")),
            "0.75",
        ),
        (functions.power(Decimal("1.5"), Decimal(3)), "3.375"),
        (
            functions.power(Decimal(2), Decimal("0.5")),
            "1.4142135623730950488016887242097",
        ),
        (functions.power(Decimal(-2), Decimal(-1)), "-0.5"),
        (trigonometry.sine(Decimal(1)), "0.84147098480789650665250232163029"),
        (
            trigonometry.sine(Decimal(-100)),
            "0.50636564110975879365655761045979",
        ),
        (trigonometry.cosine(Decimal(1)), "0.54030230586813971740093660744297"),
        (trigonometry.tangent(Decimal(1)), "1.5574077246549022305069748074583"),
        (
            trigonometry.arc_tangent(Decimal(1)),
            "0.78539816339744830961566084581988",
        ),
        (
            trigonometry.arc_tangent(Decimal(-20)),
            "-1.5208379310729538578213154046049",
        ),
        (
            trigonometry.arc_sine(Decimal("0.5")),
            "0.52359877559829887307710723054658",
        ),
        (
            trigonometry.arc_sine(Decimal(-1)),
            "-1.57079632679489661923132169163975",
        ),
        (
            trigonometry.arc_cosine(Decimal("0.5")),
            "1.0471975511965977461542144610932",
        ),
        (
            trigonometry.hyperbolic_sine(Decimal(1)),
            "1.1752011936438014568823818505956",
        ),
        (
            trigonometry.hyperbolic_cosine(Decimal(1)),
            "1.5430806348152437784779056207570",
        ),
        (
            trigonometry.area_sine(Decimal(-1)),
            "-0.88137358701954302523260932497979",
        ),
        (
            trigonometry.area_cosine(Decimal(2)),
            "1.3169578969248167086250463473080",
        ),
        (
            trigonometry.area_tangent(Decimal("0.5")),
            "0.54930614433405484569762261846126",
        ),
        (
            functions.shrink(Decimal(-2), Decimal("0.5"), Decimal("0.25")),
            "-1.75",
        ),
        (
            functions.shrink(Decimal("0.5"), Decimal("0.5"), Decimal("0.25")),
            "0",
        ),
        (functions.UNARY["Round"](None, Decimal("2.5")), "2"),
        (functions.UNARY["Round"](None, Decimal("-1.5")), "-2"),
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
        trigonometry.sine(Decimal("1e40")),
        trigonometry.cosine(Decimal("-Infinity")),
        trigonometry.arc_sine(Decimal(2)),
        trigonometry.area_cosine(Decimal("0.5")),
        trigonometry.area_tangent(Decimal(2)),
    ],
)
def test_what_is_no_number_is_nan(found):
    assert found.is_nan()


def test_log_of_zero_is_minus_infinity():
    assert functions.UNARY["Log"](None, Decimal(0)) == Decimal("-Infinity")


@pytest.mark.parametrize(
    "scale", [Decimal("1e-20"), Decimal("0.0001"), Decimal(1), Decimal(40)]
)
def test_a_power_of_e_made_of_three_is_that_of_the_whole_series(scale):
    """Decimal's own exp rounds correctly."""
    for number in range(-300, 301, 7):
        x = precision.multiply(
            Decimal(number), precision.multiply(scale, Decimal("0.01234567"))
        )
        whole = precision.PRECISION.exp(x)
        assert abs(functions.exp(x) - whole) <= whole * Decimal("1e-32")


def test_e_to_the_0_is_1_exactly():
    assert functions.exp(Decimal(0)) == 1
