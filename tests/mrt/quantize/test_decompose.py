"""Reductions too long for one i32 accumulator: cut, proven, and within the rounding that the parts' shifts imply."""

from collections import Counter

import numpy as np
import onnx_ir as ir
import pytest

from cvm.program import Input, Meaning, TensorType
from cvm.proof.validate import validate
from mrt.quantize import QuantizeOptions
from mrt.quantize.builder import ProgramBuilder
from mrt.quantize.decompose import PartialSum, add_parts
from mrt.quantize.rules.registry import RULES
from mrt.quantize.tensor import Tensor
from tests.mrt.quantize.test_context import context
from tests.support.exact import accumulators
from tests.support.float_models import FloatModel, calibrated, convert, snr_db


def test_a_sum_that_fits_is_not_cut():
    model = FloatModel(x=(1, 100))
    program = convert(model, model.gemm("x", np.ones((3, 100)), np.zeros(3)))
    assert Counter(item.name for item in program.instructions) == {
        "dense": 1,
        "rescale": 1,
    }


@pytest.mark.parametrize(("length", "parts"), [(66_000, 1), (70_000, 2)])
def test_the_cut_comes_exactly_where_the_proof_needs_it(length, parts):
    # 255 * 127 * 66,000 = 2.137e9 < 2^31 = 2.147e9 < 255 * 127 * 70,000: inputs 0..255 around zero point -128
    model = FloatModel(x=(1, length))
    graph, table = calibrated(
        model.proto(
            model.gemm(model.add("Relu", "x"), np.ones((1, length)), [0.0])
        ),
        model.inputs,
        2,
    )
    from mrt.quantize import quantize

    program = quantize(graph, table, QuantizeOptions())
    assert sum(item.name == "dense" for item in program.instructions) == parts


def test_a_dense_layer_of_300000_inputs_is_exact_within_the_shifts_rounding():
    rng = np.random.default_rng(1)
    length = 300_000
    model = FloatModel(x=(1, length))
    program = convert(
        model,
        model.gemm(
            "x", rng.uniform(-1, 1, size=(4, length)), rng.normal(size=4)
        ),
    )
    proven = validate(program)
    found = accumulators(program)
    for x in (
        rng.integers(-128, 128, (1, length)),
        np.full((1, length), 127),
        np.full((1, length), -128),
    ):
        assert found.check(proven, x.astype(np.int8))
    assert found.parts > 1


def test_a_convolution_of_4096_16_bit_channels_is_exact_within_the_shifts_rounding():
    rng = np.random.default_rng(2)
    model = FloatModel(x=(1, 4096, 4, 4))
    output = model.conv(
        "x",
        rng.uniform(-1, 1, size=(8, 4096, 3, 3)),
        rng.normal(size=8),
        pads=(1, 1, 1, 1),
    )
    program = convert(model, output, options=QuantizeOptions(8, 16))
    proven = validate(program)
    found = accumulators(program)
    for x in (
        rng.integers(-32768, 32768, (1, 4096, 4, 4)),
        np.full((1, 4096, 4, 4), -32768),
    ):
        assert found.check(proven, x.astype(np.int16))
    assert found.parts > 1


def test_parts_that_fit_together_are_added_without_a_shift():
    builder = ProgramBuilder()
    parts = [
        builder.constant(np.array([2**29], np.int32)),
        builder.constant(np.array([2**29 + 1], np.int32)),
    ]
    total, shift = add_parts(builder, [PartialSum(value) for value in parts])
    assert shift == 0
    assert builder.bounds[total].max == 2**30 + 1


def test_parts_that_do_not_fit_together_are_shifted_equally_and_round_half_up():
    builder = ProgramBuilder()
    parts = [
        builder.constant(np.array([2**31 - 1], np.int32)),
        builder.constant(np.array([2**31 - 3], np.int32)),
    ]
    total, shift = add_parts(builder, [PartialSum(value) for value in parts])
    assert shift == 1
    assert (
        builder.bounds[total].max == 2**31 - 1
    )  # (2^31 - 1 + 1) / 2 = 2^30 and (2^31 - 3 + 1) / 2 = 2^30 - 1


def test_one_bit_more_where_rounding_up_would_overflow():
    builder = ProgramBuilder()
    part = builder.constant(np.array([2**31 - 1], np.int32))
    total, shift = add_parts(builder, [PartialSum(part), PartialSum(part)])
    assert shift == 2  # 2^30 twice is 2^31, one too many
    assert builder.bounds[total].max == 2**30


def test_a_depthwise_kernel_too_large_for_i32_is_cut_by_taps():
    model = FloatModel(x=(1, 2, 30, 30))
    output = model.conv("x", np.ones((2, 1, 30, 30)), np.zeros(2), group=2)
    program = convert(model, output, options=QuantizeOptions(8, 16))
    found = accumulators(program)
    assert found.parts > 1
    assert found.check(
        validate(program), np.full((1, 2, 30, 30), 32767, np.int16)
    )


def test_a_program_without_the_cut_could_overflow():
    """The judge itself can fail: the same weights in one dense are refused."""
    from cvm.errors import Unproven
    from cvm.program import Input, Meaning, TensorType

    builder = ProgramBuilder()
    x = builder.input(
        Input("x", TensorType("i8", (1, 300_000)), -128, 127), Meaning(1.0, 0)
    )
    w = builder.constant(np.full((1, 300_000), 127, np.int8))
    b = builder.constant(np.zeros(1, np.int32))
    with pytest.raises(Unproven, match=r"dense"):
        builder.emit("dense", x, w, b, input_zp=0)


def test_a_long_product_of_two_16_bit_tensors_is_a_few_parts_and_close():
    model = FloatModel(a=(1, 4, 512), b=(1, 512, 4))
    output = model.add("MatMul", "a", "b")
    options = QuantizeOptions(8, 16)
    products = [
        item
        for item in convert(model, output, options=options).instructions
        if item.name == "matmul"
    ]
    assert 1 < len(products) <= 5
    assert (
        snr_db(model, output, options=options)[output] > 50
    )  # 12 bits of each operand


@pytest.mark.parametrize(("terms", "parts"), [(31, 5), (32, 3)])
def test_operands_are_halved_until_about_four_parts_hold_the_sum(terms, parts):
    """32767 is halved to 2^14, rounded up, and 32 * 2^14 * 2^14 is 4 * 2^31: one halving more."""
    net = context(activation_bits=16)
    for name, shape in (("one", (1, terms)), ("other", (terms, 1))):
        item = Input(name, TensorType("i16", shape), -32767, 32767)
        handle = net.builder.input(item, Meaning(1.0, 0))
        net._tensors[name] = Tensor(handle, np.ones(1), 0, (0, 1))
    operands = [
        ir.Value(name="one", shape=ir.Shape((1, terms))),
        ir.Value(name="other", shape=ir.Shape((terms, 1))),
    ]
    node = ir.node("MatMul", operands)
    node.outputs[0].name = "product"
    node.outputs[0].shape = ir.Shape((1, 1))
    RULES["MatMul"](net, node)
    product = net.as_computed(node.outputs[0])
    net.builder.output("product", product.value, Meaning(1.0, 0))
    program = net.builder.finish({})
    names = [item.name for item in program.instructions]
    assert names.count("matmul") == parts
