"""Models at the edges of what a float graph may say, where a rule could crash, refuse or give wrong numbers."""

from decimal import localcontext

import numpy as np
import pytest

from cvm.file.format import encode
from cvm.proof.validate import validate
from mrt.quantize import LayerBits, QuantizeOptions, quantize
from tests.support.float_models import (
    FloatModel,
    calibrated,
    convert,
    f32,
    run_real,
    snr_db,
)

SIXTEEN = QuantizeOptions(8, 16)
HUGE = 1e30
IMAGE = (1, 4, 7, 6)
RNG = np.random.default_rng(11)


def normal(*shape: int) -> np.ndarray:
    return f32(RNG.normal(size=shape))


def names(program) -> list[str]:
    return [item.name for item in program.instructions]


def real_outputs(
    model: FloatModel, output: str, x: np.ndarray, options=SIXTEEN
) -> np.ndarray:
    program = convert(model, output, options=options)
    encode(program)  # its metadata can be written
    return run_real(program, {"x": f32(x)})[output]


# -- products by constants ------------------------------------------------------------------------


def test_a_constant_may_repeat_the_tensor_along_its_last_axis():
    model = FloatModel(x=IMAGE)
    image = model.conv("x", np.ones((1, 4, 1, 1)), [0.0])
    output = model.add("Mul", image, f32([1, 2, 3]).reshape(3, 1, 1))
    assert snr_db(model, output, options=SIXTEEN)[output] > 60


def test_a_clip_in_front_of_negative_factors_by_channel_keeps_their_sign():
    model = FloatModel(x=IMAGE)
    image = model.conv("x", np.eye(4).reshape(4, 4, 1, 1), np.zeros(4))
    output = model.add(
        "Mul",
        model.add("Clip", image, f32(-0.5), f32(1)),
        f32([-1, -2, -3, -4]).reshape(4, 1, 1),
    )
    assert snr_db(model, output, options=SIXTEEN)[output] > 60


@pytest.mark.parametrize("factor", [0.0, 1e-38])
def test_a_layer_behind_a_factor_that_leaves_nothing(factor):
    model = FloatModel(x=IMAGE)
    scaled = model.add("Mul", model.add("Mul", "x", f32(factor)), f32(factor))
    output = model.conv(scaled, normal(2, 4, 1, 1), [1.0, -2.0])
    found = real_outputs(model, output, np.ones(IMAGE), QuantizeOptions())
    assert np.abs(found - f32([1, -2]).reshape(1, 2, 1, 1)).max() < 0.01


def test_an_output_times_zero_is_zero():
    model = FloatModel(x=(1, 5))
    assert not real_outputs(
        model, model.add("Mul", "x", f32(0.0)), np.ones((1, 5))
    ).any()


# -- ranges ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("scales", ["real", "shift"])
def test_a_huge_tensor_clipped_to_little(scales):
    model = FloatModel(x=(1, 3))
    large = model.add("Mul", "x", f32(HUGE))
    output = model.add("Clip", large, f32(0.0), f32(1e-3))
    found = real_outputs(
        model, output, [[2.0, 1.0, -1.0]], QuantizeOptions(scales=scales)
    )
    assert np.abs(found - [[1e-3, 1e-3, 0.0]]).max() < 1e-6


@pytest.mark.parametrize("size", [1e-36, 1e-30, 1e30, 1e36])
@pytest.mark.parametrize("bits", [8, 16])
def test_ranges_far_from_one_are_ranges_like_any_other(size, bits):
    model = FloatModel(x=(1, 6))
    scaled = model.add("Mul", "x", f32(size))
    output = model.gemm(
        model.add("Add", scaled, f32(size)), normal(3, 6), np.zeros(3)
    )
    assert snr_db(model, output, options=QuantizeOptions(8, bits))[output] > 30


def test_tiny_weights_are_weights_like_any_other():
    model = FloatModel(x=(1, 6))
    output = model.gemm("x", normal(3, 6) * f32(1e-35), np.zeros(3))
    assert snr_db(model, output)[output] > 30


@pytest.mark.parametrize("operator", ["Max", "Min"])
def test_a_limit_far_beyond_the_tensor_changes_nothing(operator):
    model = FloatModel(x=(1, 6))
    limit = -3e38 if operator == "Max" else 3e38
    output = model.add(operator, "x", f32(limit))
    assert snr_db(model, output, options=SIXTEEN)[output] > 40


# -- movement -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "options", [QuantizeOptions(), SIXTEEN], ids=["8 bits", "16 bits"]
)
@pytest.mark.parametrize("fill", [-1.0, 40.0])
def test_padding_may_lie_where_the_tensor_never_is(options, fill):
    model = FloatModel(x=(1, 6))
    padded = model.add(
        "Pad",
        model.add("Relu", "x"),
        np.array([0, 1, 0, 1]),
        f32(fill),
        mode="constant",
    )
    output = model.add("Add", padded, padded)
    assert snr_db(model, output, padded, options=options)[output] > 35


def test_every_second_element_of_a_tensor_of_rank_6():
    model = FloatModel(x=(1, 2, 3, 2, 2, 3))
    output = model.add("Slice", "x", *(np.array([v]) for v in (0, 3, 2, 2)))
    assert snr_db(model, output)[output] > 40


def test_an_output_that_is_an_input_once_all_moves_are_done():
    model = FloatModel(x=(2, 3))
    output = model.add(
        "Transpose", model.add("Transpose", "x", perm=[1, 0]), perm=[1, 0]
    )
    program = convert(model, output)
    assert validate(program).types[program.outputs[0].value].shape == (2, 3)
    assert snr_db(model, output)[output] > 40


def test_constants_joined_to_a_tensor_need_no_instruction():
    model = FloatModel(x=(1, 2))
    program = convert(
        model,
        model.add("Concat", "x", f32([[0.5]]), axis=1),
        options=QuantizeOptions(scales="shift"),
    )
    assert names(program) == ["rescale", "concat"]


# -- curves ---------------------------------------------------------------------------------------


def test_a_scalar_of_higher_rank_gives_a_curve_its_rank():
    model = FloatModel(x=(2, 3))
    output = model.add("Sigmoid", model.add("Mul", "x", f32([[[2.0]]])))
    assert snr_db(model, output)[output] > 28


def test_a_curve_of_two_nodes_in_front_of_an_output_reads_16_bits():
    model = FloatModel(x=(1, 4))
    dense = model.gemm("x", np.eye(4), np.zeros(4))
    program = convert(
        model, model.add("Sigmoid", model.add("Mul", dense, f32(0.5)))
    )
    assert [(item.name, item.attributes.get("dtype")) for item in program.instructions] == [
        ("dense", None), ("rescale", "i16"), ("interpolate", None), ("rescale", "i16")
    ]  # fmt: skip


def test_the_callers_decimal_context_does_not_matter():
    model = FloatModel(x=(1, 6))
    curve = model.add(
        "Gelu", model.add("Neg", model.add("Softsign", "x")), approximate="none"
    )
    graph, table = calibrated(
        model.proto(model.add("Softmax", curve, axis=-1)), model.inputs
    )
    expected = encode(quantize(graph, table, QuantizeOptions()))
    with localcontext() as context:
        context.prec = 2
        assert encode(quantize(graph, table, QuantizeOptions())) == expected


# -- long sums ------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(1, 200_000), (1, 1, 400, 400)])
def test_a_sum_of_more_16_bit_terms_than_i32_holds(shape):
    model = FloatModel(x=shape)
    axes = np.array([1]) if len(shape) == 2 else np.array([2, 3])
    output = model.add(
        "ReduceSum", model.add("Add", "x", f32(1.0)), axes, keepdims=1
    )
    graph, table = calibrated(model.proto(output), model.inputs, 2)
    program = quantize(graph, table, SIXTEEN)
    validate(program)
    found = run_real(program, {"x": np.zeros(shape, np.float32)})[output]
    assert abs(float(found.ravel()[0]) / np.prod(shape) - 1) < 1e-3


def test_a_grouped_1x1_convolution_is_cut_by_products():
    model = FloatModel(x=(1, 2048, 1, 1))
    output = model.conv("x", np.ones((4, 1024, 1, 1)), np.zeros(4), group=2)
    program = convert(model, output, options=SIXTEEN)
    assert names(program).count("conv2d") > 1
    assert snr_db(model, output, options=SIXTEEN)[output] > 35


def test_a_kernel_whose_single_channel_is_too_much_is_cut_by_products():
    model = FloatModel(x=(1, 2, 32, 32))
    output = model.conv("x", np.ones((1, 2, 32, 32)), np.zeros(1))
    assert snr_db(model, output, options=SIXTEEN)[output] > 35


# -- products of tensors --------------------------------------------------------------------------


@pytest.mark.parametrize("bits", [8, 16])
@pytest.mark.parametrize(
    ("x", "constant", "left"),
    [
        ((2, 3, 4), (2, 4, 5), False),
        ((3, 4), (2, 4, 5), False),
        ((2, 4, 3), (2, 5, 4), True),
        ((2, 4, 3), (5, 4), True),
    ],
)
def test_a_product_with_a_stack_of_constant_matrices(bits, x, constant, left):
    model = FloatModel(x=x)
    operands = (normal(*constant), "x") if left else ("x", normal(*constant))
    output = model.add("MatMul", *operands)
    assert snr_db(model, output, options=QuantizeOptions(8, bits))[output] > 30


@pytest.mark.parametrize(
    ("a", "b"), [((4,), (2, 4, 3)), ((2, 3, 4), (4,)), ((4,), (4, 2))]
)
def test_a_product_with_a_computed_vector(a, b):
    model = FloatModel(a=a, b=b)
    output = model.add("MatMul", "a", "b")
    assert snr_db(model, output)[output] > 30


def test_a_product_of_a_16_bit_and_an_8_bit_tensor():
    model = FloatModel(a=(3, 4), b=(4, 2))
    output = model.add("MatMul", model.add("Relu", "a"), "b")
    options = QuantizeOptions(
        layers={
            "v0": LayerBits(activation_bits=16),
            "a": LayerBits(activation_bits=16),
        }
    )
    assert snr_db(model, output, options=options)[output] > 30


def test_bias_correction_of_a_transposed_convolution_counts_each_tap_once_in_a_stride():
    # A window of 2x2 at stride 2 gives every output exactly one tap: at 2 bits 0.6 becomes 1.0, an error of 0.4 on average.
    model = FloatModel(x=(1, 1, 4, 4))
    ones = model.add("Add", model.add("Mul", "x", f32(0.0)), f32(1.0))
    weights = f32([[1.0, 0.6], [0.6, 0.6]]).reshape(1, 1, 2, 2)
    attributes = {
        "strides": [2, 2],
        "dilations": [1, 1],
        "pads": [0] * 4,
        "output_padding": [0, 0],
        "group": 1,
    }
    output = model.add("ConvTranspose", ones, weights, f32([0.0]), **attributes)
    found = real_outputs(
        model, output, np.zeros((1, 1, 4, 4)), QuantizeOptions(weight_bits=2)
    )
    assert abs(found.mean() - 0.7) < 0.01


def test_bias_correction_leaves_out_taps_that_meet_padding_alone():
    model = FloatModel(x=(1, 1, 3, 1))
    shifted = model.add("Add", "x", f32(-37.0))
    weights = f32([0.42, -0.014, 0.28, -0.13, -0.24, -0.08]).reshape(1, 1, 3, 2)
    output = model.conv(
        shifted, weights, [0.2], pads=(2, 1, 2, 1), dilations=[2, 2]
    )  # both columns lie in the padding
    found = real_outputs(
        model, output, np.zeros((1, 1, 3, 1)), QuantizeOptions(weight_bits=4)
    )
    assert np.abs(found - 0.2).max() < 0.01


def test_a_transposed_convolution_may_be_cut_by_more_than_its_kernel():
    model = FloatModel(x=(1, 2, 5, 5))
    attributes = {
        "strides": [1, 1],
        "dilations": [1, 1],
        "pads": [2, 1, 0, 3],
        "output_padding": [0, 0],
        "group": 1,
    }
    output = model.add(
        "ConvTranspose", "x", normal(2, 3, 2, 2), normal(3), **attributes
    )
    assert snr_db(model, output)[output] > 30


# -- options --------------------------------------------------------------------------------------


def test_an_input_that_nothing_reads_may_have_precisions_of_its_own():
    model = FloatModel(x=(1, 2), z=(1, 2))
    options = QuantizeOptions(layers={"z": LayerBits(activation_bits=4)})
    program = convert(model, model.add("Relu", "x"), options=options)
    assert [(item.name, item.lo, item.hi) for item in program.inputs] == [
        ("x", -128, 127),
        ("z", -7, 7),
    ]


def test_tables_and_joined_tensors_have_names_in_the_metadata():
    model = FloatModel(x=(1, 2))
    curve = model.add("Sigmoid", "x", name="curve")
    program = convert(
        model, model.add("Concat", curve, "x", axis=1, name="joined")
    )
    assert {item.source for item in program.metadata.values.values()} >= {
        "curve",
        "joined",
    }


def test_channels_that_a_product_with_constants_leaves_at_different_scales_are_brought_to_one():
    """The integers stay those of x: their greatest is not that of the reals."""
    model = FloatModel(x=(1, 4, 6))
    scaled = model.add("Mul", "x", np.array([1, 30, 0.1, 1, 1, 1], np.float32))
    greatest = model.add("ReduceMax", scaled, np.array([2]), keepdims=1)
    assert snr_db(model, greatest, options=QuantizeOptions(8, 8))[greatest] > 30
