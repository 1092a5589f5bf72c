"""Weights of 9..15 bits: the accumulator is the very integer that numpy's int64 gives for the undivided weights."""

import itertools

import numpy as np
import pytest

from cvm.program import DTYPES, Program
from cvm.proof.cost import cost
from cvm.proof.validate import validate
from cvm.reference.interpreter import run
from mrt.errors import BadOption
from mrt.quantize import LayerBits, QuantizeOptions
from mrt.quantize.builder import ProgramBuilder
from mrt.quantize.decompose import PartialSum, add_parts
from mrt.quantize.wide_weights import halves, low_bits_of
from tests.support.float_models import FloatModel, convert, f32, snr_db

RNG = np.random.default_rng(11)
IMAGE = (1, 4, 5, 6)


@pytest.mark.parametrize("bits", range(9, 16))
def test_two_i8_halves_make_every_weight(bits):
    most, low_bits = 2 ** (bits - 1) - 1, bits - 8
    weights = np.arange(-most, most + 1)
    high, low = halves(weights, low_bits)
    assert high.dtype == low.dtype == np.int8
    assert (high.astype(np.int64) * 2**low_bits + low == weights).all()
    assert min(high.min(), low.min()) >= -127


def test_the_greatest_weight_says_how_many_bits_the_low_half_has():
    assert [
        low_bits_of(np.array([value], np.int16))
        for value in (0, -127, 128, 255, -256, 16383)
    ] == [
        0,
        0,
        1,
        1,
        2,
        7,
    ]


def integers(reals: np.ndarray, scale: np.ndarray | float) -> np.ndarray:
    return np.floor(reals.astype(np.float64) / scale + 0.5).astype(np.int64)


def accumulator(program: Program, x: np.ndarray) -> np.ndarray:
    """The widest sum before the output is brought to 16 bits, by the reference; no part was shifted right."""
    assert not any(item.name == "shift_right" for item in program.instructions)
    seen: dict[int, np.ndarray] = {}
    run(validate(program), {"x": x}, observe=seen.__setitem__)
    last = max(
        number
        for number, item in enumerate(
            program.instructions, program.first_instruction
        )
        if item.name in ("add", "conv2d", "conv2d_transpose", "dense", "matmul")
    )
    return seen[last].astype(np.int64)


def extremes(program: Program) -> list[np.ndarray]:
    item = program.inputs[0]
    dtype, shape = DTYPES[item.type.dtype], item.type.shape
    random = RNG.integers(item.lo, item.hi, shape, endpoint=True)
    return [
        array.astype(dtype)
        for array in (random, np.full(shape, item.lo), np.full(shape, item.hi))
    ]


def convolution(
    x: np.ndarray, w: np.ndarray, bias: np.ndarray, group: int
) -> np.ndarray:
    """[1,C,H,W] by [O,C/g,3,3], padded by 1, as [1,H,W,O]; plain loops."""
    x = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
    total = (
        np.zeros((1, x.shape[2] - 2, x.shape[3] - 2, len(w)), np.int64) + bias
    )
    share = len(w) // group
    for o, i, j in np.ndindex(len(w), total.shape[1], total.shape[2]):
        first = o // share * w.shape[1]
        total[0, i, j, o] += (
            x[0, first : first + w.shape[1], i : i + 3, j : j + 3] * w[o]
        ).sum()
    return total


def transposed(x: np.ndarray, w: np.ndarray, bias: np.ndarray) -> np.ndarray:
    """[1,C,H,W] by [C,O,3,3], stride 2, as [1,2H+1,2W+1,O]."""
    total = (
        np.zeros(
            (1, 2 * x.shape[2] + 1, 2 * x.shape[3] + 1, w.shape[1]), np.int64
        )
        + bias
    )
    for c, i, j, p, q in np.ndindex(w.shape[0], x.shape[2], x.shape[3], 3, 3):
        total[0, 2 * i + p, 2 * j + q] += x[0, c, i, j] * w[c, :, p, q]
    return total


def check(
    model: FloatModel,
    output: str,
    weights: np.ndarray,
    bias: np.ndarray,
    options: QuantizeOptions,
    exact,
):
    """`weights` [O, ..]; `exact(x, w, b)` gives what the accumulator must be."""
    program = convert(model, output, options=options)
    meaning = program.metadata.inputs["x"]
    most = 2 ** (options.weight_bits - 1) - 1
    scales = (
        np.abs(weights.astype(np.float64)).reshape(len(weights), -1).max(axis=1)
        / most
    )
    w = integers(weights, scales.reshape(-1, *[1] * (weights.ndim - 1)))
    b = integers(bias, meaning.scale * scales)
    assert np.abs(w).max() == most
    for x in extremes(program):
        found = accumulator(program, x)
        assert (
            found == exact(x.astype(np.int64) - meaning.zero_point, w, b)
        ).all()
    return program


BITS = list(itertools.product((9, 12, 15), (8, 16)))


def options_of(bits: tuple[int, int]) -> QuantizeOptions:
    return QuantizeOptions(*bits, bias_correction=False)


@pytest.mark.parametrize("bits", [(9, 8), (12, 8), (15, 8), (9, 16)], ids=str)
@pytest.mark.parametrize("group", [1, 2, 4])
def test_a_convolution_is_exact(bits, group):
    weights = f32(RNG.normal(size=(8, 4 // group, 3, 3)))
    bias = f32(RNG.normal(size=8))
    model = FloatModel(x=IMAGE)
    output = model.conv("x", weights, bias, pads=(1, 1, 1, 1), group=group)
    program = check(
        model,
        output,
        weights,
        bias,
        options_of(bits),
        lambda x, w, b: convolution(x, w, b, group),
    )
    assert sum(item.name == "conv2d" for item in program.instructions) == 2


@pytest.mark.parametrize("bits", [(9, 8), (15, 8), (9, 16)], ids=str)
def test_a_transposed_convolution_is_exact(bits):
    weights, bias = f32(RNG.normal(size=(4, 6, 3, 3))), f32(RNG.normal(size=6))
    model = FloatModel(x=IMAGE)
    attributes = {
        "strides": [2, 2],
        "dilations": [1, 1],
        "pads": [0] * 4,
        "output_padding": [0, 0],
        "group": 1,
    }
    output = model.add("ConvTranspose", "x", weights, bias, **attributes)
    check(
        model,
        output,
        weights.transpose(1, 0, 2, 3),
        bias,
        options_of(bits),
        lambda x, w, b: transposed(x, w.transpose(1, 0, 2, 3), b),
    )


@pytest.mark.parametrize("bits", [(9, 8), (15, 8), (9, 16), (15, 16)], ids=str)
def test_a_dense_layer_is_exact(bits):
    weights, bias = f32(RNG.normal(size=(7, 3))), f32(RNG.normal(size=7))
    model = FloatModel(x=(2, 3))
    program = check(
        model,
        model.gemm("x", weights, bias),
        weights,
        bias,
        options_of(bits),
        lambda x, w, b: x @ w.T + b,
    )
    assert cost(validate(program)).work.multiply_accumulates == 2 * (2 * 3 * 7)


def test_a_product_with_a_constant_matrix_is_exact():
    weights = f32(RNG.normal(size=(9, 5)))
    model = FloatModel(x=(2, 3, 9))
    output = model.add("MatMul", "x", weights)
    check(
        model,
        output,
        weights.T,
        np.zeros(5),
        options_of((15, 8)),
        lambda x, w, b: x @ w.T + b,
    )


@pytest.mark.parametrize("length", [600, 6000])
def test_a_sum_too_long_for_i32_is_within_the_rounding_of_its_parts(length):
    weights = f32(RNG.uniform(-1, 1, size=(3, length)))
    model = FloatModel(x=(1, length))
    output = model.gemm("x", weights, np.zeros(3))
    program = convert(
        model, output, options=QuantizeOptions(15, 16, bias_correction=False)
    )
    rights = [
        item.operands[1]
        for item in program.instructions
        if item.name == "shift_right"
    ]
    step = 2 ** max(
        int(program.constants[number - program.first_constant].max())
        for number in rights
    )
    parts = sum(item.name == "dense" for item in program.instructions)
    w = integers(
        weights,
        np.abs(weights.astype(np.float64)).max(axis=1, keepdims=True) / 16383,
    )
    last = max(
        n
        for n, item in enumerate(
            program.instructions, program.first_instruction
        )
        if item.name == "add"
    )
    for x in extremes(program):
        seen: dict[int, np.ndarray] = {}
        run(validate(program), {"x": x}, observe=seen.__setitem__)
        error = seen[last].astype(np.int64) * step - x.astype(np.int64) @ w.T
        assert np.abs(error).max() <= parts * step // 2


def test_parts_of_different_weight_are_added_at_the_finest_step_that_fits():
    builder = ProgramBuilder()
    high, low = (
        builder.constant(np.array([value], np.int32)) for value in (3, 5)
    )
    total, shift = add_parts(builder, [PartialSum(high, 7), PartialSum(low)])
    assert (shift, builder.bounds[total].max) == (0, 3 * 128 + 5)


def test_a_high_part_without_room_is_shifted_less_and_the_low_one_right():
    builder = ProgramBuilder()
    high, low = (
        builder.constant(np.array([value], np.int32)) for value in (2**26, 11)
    )
    total, shift = add_parts(builder, [PartialSum(high, 7), PartialSum(low)])
    assert (shift, builder.bounds[total].max) == (
        3,
        2**26 * 16 + 1,
    )  # 2^33 does not fit; 11 / 8 = 1.375


def test_one_layer_may_have_finer_weights_and_only_it_costs_two_products():
    model = FloatModel(x=IMAGE)
    first = model.conv(
        "x", RNG.normal(size=(4, 4, 3, 3)), np.zeros(4), name="first"
    )
    model.conv(
        model.add("Relu", first),
        RNG.normal(size=(4, 4, 3, 3)),
        np.zeros(4),
        name="second",
    )
    program = convert(
        model,
        "second",
        options=QuantizeOptions(layers={"second": LayerBits(weight_bits=15)}),
    )
    assert sum(item.name == "conv2d" for item in program.instructions) == 3


def test_fifteen_bits_of_weight_and_sixteen_of_activation_are_much_closer_than_eight():
    model = FloatModel(x=IMAGE)
    output = model.conv(
        "x", RNG.normal(size=(8, 4, 3, 3)), RNG.normal(size=8), name="y"
    )
    coarse, fine = (
        snr_db(model, output, options=QuantizeOptions(bits, 16))[output]
        for bits in (8, 15)
    )
    assert coarse < 55
    assert fine > 75


def test_sixteen_bit_weights_are_refused():
    with pytest.raises(BadOption, match="weight_bits = 16: expected one of 2"):
        QuantizeOptions(weight_bits=16)
