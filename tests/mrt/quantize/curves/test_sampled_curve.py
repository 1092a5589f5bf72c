"""Tables are what computing every entry in decimal makes them, though most are only enclosed: above all beside a tie."""

import hashlib
from decimal import Decimal

import numpy as np
import pytest

from mrt.exact import enclosed_functions, enclosure, functions
from mrt.exact.enclosure import Enclosure
from mrt.exact.precision import multiply
from mrt.quantize.curves.curve import Curve
from mrt.quantize.curves.sampled_curve import SampledCurve
from mrt.quantize.tensor import Format
from tests.support.curves import CURVES, SILU, CurveOf, one

SCALES = [1e-36, 1e-9, 2.0**-12, 0.00137, 1.0, 1e20]
ALL = np.arange(-32768, 32768)


def i16(scale: float) -> Format:
    return Format("i16", scale, 0, -32768, 32767)


def some_integers(seed: int, count: int) -> np.ndarray:
    chosen = np.random.default_rng(seed).choice(ALL, count)
    return np.unique([-32768, -1, 0, 1, 32767, *chosen])


def in_decimal(
    curve: Curve, scale: float, zero_point: int, integers: np.ndarray
) -> SampledCurve:
    """The same with nothing enclosed, so that every value is computed to 34 digits."""
    nothing = Enclosure(
        np.full(integers.size, np.nan), np.full(integers.size, np.nan)
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Curve, "enclosed", lambda self, reals: nothing)
        return SampledCurve(curve, scale, zero_point, integers)


def wrong_beside_ties(name: str) -> int:
    """How many entries differ from those in decimal where a value lies within a bit of float64 of a half step."""
    rng = np.random.default_rng(7)
    wrong = 0
    for scale in (0.00173, 0.02):
        integers = some_integers(3, 6)
        found, expected = (
            make(CURVES[name], scale, 0, integers)
            for make in (SampledCurve, in_decimal)
        )
        for place in range(integers.size):
            size = abs(float(expected.exactly(place)))
            if 0 < size < np.inf:
                tie = size / (int(rng.integers(0, 30000)) + 0.5)
                for target in (
                    i16(np.nextafter(tie, 0)),
                    i16(tie),
                    i16(np.nextafter(tie, np.inf)),
                ):
                    wrong += int(
                        (
                            found.entries(target) != expected.entries(target)
                        ).sum()
                    )
    return wrong


@pytest.mark.parametrize("name", CURVES)
def test_a_table_is_what_decimal_makes_it_at_every_scale(name):
    rng = np.random.default_rng(5)
    for scale in SCALES:
        integers = some_integers(int(rng.integers(99)), 8)
        zero_point = int(rng.choice([0, 0, -128, 4]))
        found, expected = (
            make(CURVES[name], scale, zero_point, integers)
            for make in (SampledCurve, in_decimal)
        )
        assert found.interval() == expected.interval()
        assert found.is_integer() == expected.is_integer()
        reach = min(max(map(abs, expected.interval())), 1e30) or 1.0
        for target in (
            i16(reach / 32767),
            i16(2.0**-9),
            Format("i8", reach / 90, -128, -128, 127),
        ):
            assert (
                found.entries(target).tolist()
                == expected.entries(target).tolist()
            ), (scale, target)


@pytest.mark.parametrize("name", CURVES)
def test_beside_a_tie_decimal_decides(name):
    assert wrong_beside_ties(name) == 0


def test_without_its_margins_an_enclosure_rounds_wrong_beside_a_tie(
    monkeypatch,
):
    """So the test above fails if they are too narrow."""
    monkeypatch.setattr(enclosure, "MARGIN", 0.0)
    monkeypatch.setattr(enclosure, "NEAR_ZERO", 0.0)
    assert [
        name
        for name in ("Sigmoid", "Tanh", "Exp", "Gelu", "SiLU", "Sin", "Asinh")
        if not wrong_beside_ties(name)
    ] == []


@pytest.mark.parametrize("name", CURVES)
def test_what_decimal_gives_lies_in_the_enclosure_with_room(name, monkeypatch):
    """The libraries of this machine need less than a 256th of the margin."""
    monkeypatch.setattr(enclosure, "MARGIN", enclosure.MARGIN / 256)
    curve = CURVES[name]
    for scale in SCALES[1:-1]:
        integers = some_integers(11, 12)
        reals = Enclosure.of(scale) * Enclosure.of(integers)
        enclosed = curve.enclosed(reals)
        exact = in_decimal(curve, scale, 0, integers)
        undefined = np.broadcast_to(enclosed.undefined, integers.shape)
        for place in range(integers.size):
            number = exact.exactly(place)
            low = enclosed.low[place]
            high = enclosed.high[place]
            if undefined[place]:
                assert number.is_nan()
            elif not np.isnan(low):
                assert Decimal(low) <= number <= Decimal(high), (
                    scale,
                    integers[place],
                )


@pytest.mark.parametrize(
    ("name", "scale", "top", "digest"),
    [
        ("Sigmoid", 37.123 / 32768, 0.9999999999999999, "a6ac90c0ee19aa11"),
        ("Tanh", 37.123 / 32768, 1.0, "3881bbfe28ed4425"),
        ("Exp", 2.0**-12, 2980.2303029279146, "09f4c4a8d0ea9ad7"),
        ("Log", 2.0**-12, 10000.0, "31bc0d1f2ffcd7b5"),
        ("Sqrt", 37.123 / 32768, 6.0927717088322995, "7c94193015535bb5"),
        ("Erf", 37.123 / 32768, 1.0, "8bf2dcc424e787b7"),
        ("Softplus", 37.123 / 32768, 37.121867095947266, "0bf9057af892109d"),
        ("HardSwish", 37.123 / 32768, 37.121867095947266, "5f5fcd0063703fba"),
        ("Gelu", 2.0**-12, 7.999755859374995, "3fc3d4847fe2f71a"),
        ("Mish", 37.123 / 32768, 37.121867095947266, "9f013e3368d24bd2"),
        ("Floor", 2.0**-12, 8.0, "952e0b17f0773cfa"),
        ("Sin", 2.0**-12, 0.9999999999900789, "6a98e59e0798c622"),
        ("Acosh", 2.0**-12, 2.7686286240092155, "a83025ad00e45072"),
        ("SiLU", 2.0**-12, 7.997072485382887, "9461a1a0d6fdd95a"),
    ],
)
def test_a_whole_table_is_byte_for_byte_what_65536_decimals_made_it(
    name, scale, top, digest
):
    """The digests are of tables of which every entry was computed to 34 digits."""
    entries = SampledCurve(CURVES[name], scale, 0, ALL).entries(
        i16(top / 32767)
    )
    assert hashlib.sha256(entries.tobytes()).hexdigest()[:16] == digest


@pytest.mark.parametrize(
    "scale", [0.00073, 0.00113]
)  # at the latter, most of the numbers next to 1 are within a margin
@pytest.mark.parametrize(
    "name",
    [
        "Sigmoid",
        "Tanh",
        "Exp",
        "Log",
        "Sqrt",
        "Erf",
        "Gelu",
        "HardSwish",
        "Mish",
        "SiLU",
    ],
)
def test_hardly_any_entry_is_computed_in_decimal(name, scale, monkeypatch):
    computed = count_of_decimals(monkeypatch)
    sampled = SampledCurve(CURVES[name], scale, 0, ALL)
    sampled.entries(i16(sampled.interval()[1] / 32767))
    assert len(computed) < 100


def count_of_decimals(monkeypatch: pytest.MonkeyPatch) -> list[Decimal]:
    """A list that gets every real that is computed in decimal."""
    computed: list[Decimal] = []
    exactly = Curve.exactly
    monkeypatch.setattr(
        Curve,
        "exactly",
        lambda self, real: computed.append(real) or exactly(self, real),
    )
    return computed


def test_of_many_tiny_values_above_zero_none_is_computed_to_be_no_less(
    monkeypatch,
):
    """A hundred HardSwish halve a number below 3 each time, until nearly all lie within the margin of 0."""
    curve = CurveOf()
    last = "x"
    for _ in range(110):
        last = curve.add("HardSwish", last)
    sampled = SampledCurve(curve.curve(), 0.0011, 0, np.arange(3000))
    computed = count_of_decimals(monkeypatch)
    assert sampled.interval()[0] == 0.0
    assert len(computed) < 10


@pytest.mark.parametrize("x", [-(2.0**-70), 0.0, 2.0**-70])
@pytest.mark.parametrize("y", [-(2.0**-70), 0.0, 2.0**-70])
def test_a_product_has_the_sign_of_its_factors_however_small(x, y):
    product = Enclosure.of([x]) * Enclosure.of([y])
    if x * y >= 0:
        assert product.low >= 0
    if x * y <= 0:
        assert product.high <= 0
    assert product.low <= x * y <= product.high


def test_a_factor_of_either_sign_leaves_the_sign_of_a_product_open():
    either = Enclosure(np.array([-1.0]), np.array([2.0]))
    product = either * Enclosure.of([3.0])
    assert product.low <= -3 and product.high >= 6


def test_every_function_has_its_enclosed_form():
    assert enclosed_functions.UNARY.keys() == functions.UNARY.keys()
    assert enclosed_functions.BINARY.keys() == functions.BINARY.keys()


def test_where_a_function_is_no_number_the_nearest_integer_speaks():
    """Sqrt at -2..2: 0 0 0 1 1.41; Log at 0 is minus infinity."""
    root, log = (
        SampledCurve(one(name), 1.0, 0, np.arange(-2, 3))
        for name in ("Sqrt", "Log")
    )
    assert root.entries(i16(0.5)).tolist() == [0, 0, 0, 2, 3]
    assert log.entries(i16(0.5)).tolist() == [-32768, -32768, -32768, 0, 1]
    assert root.interval() == (0.0, 2**0.5)


def test_what_a_where_drops_need_not_be_a_number():
    """Where(x > 0, Log(x), -x) at -2..2: 2 1 0 0 0.69."""
    curve = CurveOf()
    logarithm, opposite = curve.add("Log", "x"), curve.add("Neg", "x")
    curve.add("Where", curve.add("Greater", "x", 0.0), logarithm, opposite)
    sampled = SampledCurve(curve.curve(), 1.0, 0, np.arange(-2, 3))
    assert sampled.entries(i16(0.5)).tolist() == [4, 2, 0, 0, 1]
    assert sampled.interval() == (0.0, 2.0)


def test_where_a_where_chooses_no_number_the_nearest_integer_speaks():
    """Where(x < 1, Sqrt(x), x) at -1..1: none 0 1."""
    curve = CurveOf()
    root, less = curve.add("Sqrt", "x"), curve.add("Less", "x", 1.0)
    curve.add("Where", less, root, "x")
    sampled = SampledCurve(curve.curve(), 1.0, 0, np.arange(-1, 2))
    assert sampled.entries(i16(0.5)).tolist() == [0, 0, 2]


def test_nowhere_a_number_is_the_least_integer_everywhere():
    sampled = SampledCurve(one("Sqrt"), 1.0, 0, np.arange(-5, -1))
    assert sampled.interval() == (0.0, 0.0)
    assert sampled.entries(i16(1.0)).tolist() == [-32768] * 4


@pytest.mark.parametrize(
    "name",
    sorted(enclosed_functions.RISING | enclosed_functions.RISING_BY_POSITIVE),
)
def test_the_ends_of_a_rising_function_are_those_of_all_its_numbers(name):
    for scale in (
        0.6,
        0.9,
        1.0,
        1.2,
    ):  # of which some saturate within a margin of each other
        integers = np.arange(-31, 32)
        numbers = [
            one(name).exactly(multiply(Decimal(scale), Decimal(int(integer))))
            for integer in integers
        ]
        floats = [float(number) for number in numbers if not number.is_nan()]
        assert floats == sorted(floats)
        assert SampledCurve(one(name), scale, 0, integers).interval() == (
            min(floats),
            max(floats),
        )


def test_a_function_turned_upside_down_does_not_rise():
    assert one("Elu", alpha=1.0).rises
    assert not one("Elu", alpha=-1.0).rises


def test_beyond_float64_exp_is_saturated_and_its_end_infinite():
    sampled = SampledCurve(one("Exp"), 1.0, 0, np.arange(700, 800))
    assert sampled.interval()[1] == np.inf
    assert set(sampled.entries(i16(1.0)).tolist()) == {32767}


@pytest.mark.parametrize(
    ("name", "whole"),
    [("Floor", True), ("SiLU", False), ("Mod by 3", True), ("Div by 3", False)],
)
def test_integers_are_told_from_others(name, whole):
    curves = {
        "Mod by 3": one("Mod", "x", 3.0),
        "Div by 3": one("Div", "x", 3.0),
        "Floor": one("Floor"),
        "SiLU": SILU,
    }
    assert (
        SampledCurve(curves[name], 1.0, 0, np.arange(-9, 10)).is_integer()
        == whole
    )
