"""Which integers stand for which reals, in literals."""

import pytest

from mrt.errors import BadOption
from mrt.quantize import LayerBits, QuantizeOptions
from mrt.quantize.tensor import Format, choose_format, signed_integers
from mrt.table.table import MeasuredRange

ANYWHERE = (-float("inf"), float("inf"))
NEVER_NEGATIVE = (0.0, float("inf"))


def chosen(
    low,
    high,
    bits,
    *,
    interval=ANYWHERE,
    scales="real",
    scheme="symmetric",
    unsigned=True,
) -> Format:
    return choose_format(
        MeasuredRange(low, high, low, high),
        bits,
        interval=interval,
        scales=scales,
        scheme=scheme,
        unsigned=unsigned,
    )


def test_signed_values_use_the_whole_type_at_8_bits():
    assert chosen(-127.0, 100.0, 8) == Format("i8", 1.0, 0, -128, 127)


def test_values_never_negative_use_the_unsigned_range():
    assert chosen(0.0, 255.0, 8, interval=NEVER_NEGATIVE) == Format(
        "i8", 1.0, -128, -128, 127
    )


def test_or_the_signed_one_if_the_unsigned_is_not_wanted():
    assert chosen(
        0.0, 127.0, 8, interval=NEVER_NEGATIVE, unsigned=False
    ) == Format("i8", 1.0, 0, -128, 127)
    assert chosen(
        0.0, 7.0, 4, interval=NEVER_NEGATIVE, unsigned=False
    ) == Format("i8", 1.0, 0, -7, 7)
    assert QuantizeOptions().steps_from_zero(8, negative=False) == 255
    assert QuantizeOptions().steps_from_zero(8, negative=True) == 127
    assert (
        QuantizeOptions(unsigned=False).steps_from_zero(8, negative=False)
        == 127
    )


def test_fewer_bits_are_symmetric():
    assert chosen(-7.0, 7.0, 4) == Format("i8", 1.0, 0, -7, 7)
    assert chosen(0.0, 15.0, 4, interval=NEVER_NEGATIVE) == Format(
        "i8", 1.0, -8, -8, 7
    )


def test_16_bits_leave_headroom_of_two():
    assert chosen(-32767.0, 1.0, 16) == Format("i16", 2.0, 0, -32768, 32767)


def test_headroom_ends_where_no_input_can_reach():
    assert chosen(-0.9, 0.9, 16, interval=(-1.0, 1.0)).scale == 1.0 / 32767


def test_an_affine_zero_point_lies_where_real_zero_is():
    assert chosen(-55.0, 200.0, 8, scheme="affine") == Format(
        "i8", 1.0, -73, -128, 127
    )


def test_power_of_two_scales_cover_the_range():
    assert chosen(-127.5, 1.0, 8, scales="shift").scale == 2.0
    assert chosen(-127.0, 1.0, 8, scales="shift").scale == 1.0


def test_a_value_that_is_always_zero_has_a_scale():
    assert chosen(0.0, 0.0, 8).scale == 1.0


def test_the_observers_range_counts_below_16_bits_and_what_was_seen_at_16():
    seen = MeasuredRange(-1000.0, 1000.0, -127.0, 127.0)
    assert (
        choose_format(
            seen, 8, interval=ANYWHERE, scales="real", scheme="symmetric"
        ).scale
        == 1.0
    )
    assert (
        choose_format(
            seen, 16, interval=ANYWHERE, scales="real", scheme="symmetric"
        ).scale
        == 2000.0 / 32767
    )


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (
            {"weight_bits": 16},
            "weight_bits = 16: expected one of 2, 3, .*, 14, 15",
        ),
        (
            {"activation_bits": 12},
            "activation_bits = 12: expected one of 2, 3, 4, 5, 6, 7, 8, 16",
        ),
        ({"scales": "half"}, "scales = 'half': expected one of real, shift"),
        ({"scheme": "x"}, "scheme = 'x': expected one of symmetric, affine"),
    ],
)
def test_options_out_of_range_are_refused(options, sentence):
    with pytest.raises(BadOption, match=f"^{sentence}$"):
        QuantizeOptions(**options)


def test_bits_of_a_layer_out_of_range_are_refused():
    with pytest.raises(BadOption, match=r"^weight_bits = 1: expected one of 2"):
        LayerBits(weight_bits=1)


@pytest.mark.parametrize(
    ("bits", "expected"),
    [
        (4, ("i8", -7, 7)),
        (8, ("i8", -128, 127)),
        (9, ("i16", -255, 255)),
        (16, ("i16", -32768, 32767)),
    ],
)
def test_signed_integers_lie_in_the_narrowest_dtype(bits, expected):
    assert signed_integers(bits) == expected
