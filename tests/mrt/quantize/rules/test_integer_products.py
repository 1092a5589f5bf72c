"""Numbers of leaves, counts and places reach what looks them up as the integers that they are, at 8 bits too."""

import numpy as np
import pytest
from onnx import TensorProto

from mrt.errors import Unsupported
from mrt.quantize import QuantizeOptions
from mrt.quantize.rules.integer_products import digits
from tests.support.float_models import FloatModel, convert, f32, run_real

EIGHT, SIXTEEN = QuantizeOptions(8, 8), QuantizeOptions(8, 16)
ROWS = (3, 4)
X = f32(
    [[0.9, -0.9, 0.9, 0.9], [-0.9, 0.9, -0.9, -0.9], [-0.9, -0.9, 0.9, -0.9]]
)
BOOLEANS = (X > 0).astype(np.int64)


def booleans(m: FloatModel) -> str:
    return m.add("Cast", m.add("Greater", "x", f32(0.1)), to=TensorProto.FLOAT)


def whole(m: FloatModel, value: str) -> str:
    return m.add(
        "Cast", m.add("Cast", value, to=TensorProto.INT64), to=TensorProto.FLOAT
    )


@pytest.mark.parametrize("most", [127, 128, 16383, 2**31 - 1])
def test_digits_of_7_bits_make_every_weight_again(most):
    weights = np.array([most, -most, 0, 1, -1, most // 2, -most // 3])
    found = digits(weights)
    assert all(
        digit.dtype == np.int8 and np.abs(digit.astype(int)).max() <= 127
        for digit in found
    )
    assert (
        sum(
            digit.astype(np.int64) << (7 * place)
            for place, digit in enumerate(found)
        )
        == weights
    ).all()


@pytest.mark.parametrize("options", [EIGHT, SIXTEEN], ids=["8 bits", "16 bits"])
def test_a_product_of_booleans_by_whole_weights_is_exact(options):
    weights = np.array([[3, 300, -70000, 5], [4, 31, 901, 1023]])
    m = FloatModel(x=ROWS)
    total = whole(m, m.gemm(booleans(m), weights, [7, -7]))
    found = run_real(convert(m, total, options=options), {"x": X})[total]
    assert (found == BOOLEANS @ weights.T + [7, -7]).all()


def test_the_number_of_a_leaf_finds_its_row_in_a_table():
    numbers, table = np.array([[4, 37, 200, 299]]), f32(np.arange(300) / 8)
    m = FloatModel(x=ROWS)
    place = m.add(
        "Cast", m.gemm(booleans(m), numbers, [-299]), to=TensorProto.INT64
    )
    output = m.add("Gather", table, place, axis=0)
    found = run_real(convert(m, output, options=EIGHT), {"x": X})[output]
    expected = table[BOOLEANS @ numbers.T - 299]  # some from behind
    assert np.abs(found - expected).max() <= 37.4 / 255


def test_rounded_floats_are_cast_as_the_integers_that_they_are():
    m = FloatModel(x=ROWS)
    output = whole(m, m.add("Round", m.add("Mul", "x", f32(7.7))))
    found = run_real(convert(m, output, options=EIGHT), {"x": X})[output]
    assert (found == np.round(X * f32(7.7))).all()  # 6.93: not near a half


def test_a_sum_is_cut_off_in_16_bits_where_values_have_8():
    m = FloatModel(x=ROWS)
    output = whole(m, m.gemm("x", np.eye(4) * 61, np.full(4, 0.5)))
    found = run_real(convert(m, output, options=EIGHT), {"x": X})[output]
    at_8_bits = (
        X.astype(np.float64) * 61 + 0.5
    )  # 55.4 and -54.4; the input's own rounding moves them by up to 0.25
    assert np.abs(found - np.trunc(at_8_bits)).max() == 0


def exponentials_that_are_200(gain):
    """Return a model of integers in an interval that is `gain` times as wide as that of Exp, and its output."""
    m = FloatModel(x=ROWS)
    number = m.add(
        "Cast",
        m.add("Mul", m.add("Exp", "x"), f32(gain)),
        to=TensorProto.INT64,
    )
    output = m.add(
        "Cast", m.add("Equal", number, np.array(200)), to=TensorProto.FLOAT
    )
    return m, output


def test_integers_between_which_steps_fall_are_refused_not_rounded():
    m, output = exponentials_that_are_200(200.0)
    with pytest.raises(
        Unsupported,
        match=r"\(Cast\): '.*' is held in steps of .*, between which integers are lost; give it 16 bits",
    ):
        convert(m, output, options=EIGHT)
    convert(m, output, options=SIXTEEN)


@pytest.mark.parametrize("options", [EIGHT, SIXTEEN], ids=["8", "16"])
def test_more_bits_are_no_advice_where_16_are_too_few(options):
    m, output = exponentials_that_are_200(1e5)
    with pytest.raises(
        Unsupported, match="more bits do not help, since even 16"
    ):
        convert(m, output, options=options)


def test_a_sum_of_integers_beyond_i32_is_refused_before_it_is_looked_up():
    m = FloatModel(x=ROWS)
    output = whole(m, m.gemm(booleans(m), np.full((1, 4), 2**30), [0]))
    with pytest.raises(
        Unsupported,
        match=r"\(Cast\): sums of integers that cannot be held exactly in i32",
    ):
        convert(m, output, options=SIXTEEN)


RNG = np.random.default_rng(8)


def counted(m: FloatModel, most: int) -> str:
    """The input in steps of 1: integers of at most this size, as floats."""
    return m.add("Clip", m.add("Round", "x"), f32(-most), f32(most))


@pytest.mark.parametrize("most", [1, 100, 300])
@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize("options", [EIGHT, SIXTEEN], ids=["8 bits", "16 bits"])
def test_a_convolution_of_integers_by_ternary_weights_is_exact(
    options, groups, most
):
    images = RNG.integers(-2, 3, (1, 4, 6, 6)).astype(np.float32)
    weights = RNG.integers(-most, most + 1, (6, 4 // groups, 3, 3))
    bias = RNG.integers(-99, 100, 6)
    m = FloatModel(x=images.shape)
    output = m.conv(
        counted(m, 2),
        weights,
        bias,
        group=groups,
        pads=[1, 1, 1, 1],
        strides=[2, 1],
    )
    found = run_real(convert(m, output, options=options), {"x": images})[output]
    rows = np.pad(images, [(0, 0), (0, 0), (1, 1), (1, 1)])[0]
    each = 4 // groups
    for channel in range(6):
        first = channel // (6 // groups) * each
        for y in range(3):
            for x in range(6):
                part = rows[first : first + each, 2 * y : 2 * y + 3, x : x + 3]
                wanted = (part * weights[channel]).sum() + bias[channel]
                assert found[0, channel, y, x] == wanted


def test_the_sign_of_a_sum_is_exact_however_small_the_sum_is():
    """The first output is near 100000, so 16 bits would make 0 of the 1 of the second."""
    weights = np.array([[50000, 40000, 9000, 900], [1, 0, 0, 0], [-1, 0, 0, 0]])
    m = FloatModel(x=ROWS)
    sums = m.gemm(counted(m, 1), weights, [0, 0, 0])
    output = m.add("Sign", sums)
    x = f32([[1, 1, 1, 1], [0, 0, 0, 0], [-1, -1, -1, -1]])
    found = run_real(convert(m, output, options=EIGHT), {"x": x})[output]
    assert found.tolist() == [[1, 1, -1], [0, 0, 0], [-1, -1, 1]]


def test_the_sign_of_a_real_sum_is_that_of_its_accumulator():
    weights = np.array([[100.5, 90.25, 80.0, 7.0], [0.25, 0, 0, 0]])
    m = FloatModel(x=ROWS)
    output = m.add("Sign", m.gemm(counted(m, 1), weights, [0, 0.001]))
    x = f32([[1, 1, 1, 1], [0, 0, 0, 0], [-1, -1, -1, -1]])
    found = run_real(convert(m, output, options=EIGHT), {"x": x})[output]
    assert found.tolist() == [[1, 1], [0, 1], [-1, -1]]
