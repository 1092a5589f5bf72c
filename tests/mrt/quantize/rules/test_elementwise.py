"""Sums and products with constants: at which scale, with which clip, by how many instructions."""

import math

import numpy as np
import onnx_ir as ir
import pytest

from cvm.program import Input, Meaning, TensorType
from mrt.quantize.context import LoweringContext
from mrt.quantize.rules.elementwise import (
    FEWEST_GUARD_BITS,
    HALF_RANGE,
    USUAL_GUARD_BITS,
    _scaled,
    scale_with_guard_bits,
)
from mrt.quantize.rules.registry import RULES
from mrt.quantize.tensor import Tensor
from tests.mrt.quantize.test_context import context
from tests.support.float_models import FloatModel, convert, run_real

SHAPE = (2, 4)


@pytest.mark.parametrize("coarser", range(USUAL_GUARD_BITS - FEWEST_GUARD_BITS))
def test_a_sum_has_the_finest_scale_that_leaves_half_of_i32(coarser):
    """One real more than fits takes the next scale, and so does one that would reach the half itself."""
    net = context()
    coarse = 8.0 / 127  # of the value's 8-bit form
    scale = math.ldexp(coarse, coarser - USUAL_GUARD_BITS)
    fits = math.nextafter(HALF_RANGE * scale, 0.0)
    assert scale_with_guard_bits(net, "one", fits) == scale
    assert scale_with_guard_bits(net, "one", HALF_RANGE * scale) == 2 * scale


@pytest.mark.parametrize("factor", [0.5, 3.0, -2.0])
def test_a_clip_before_a_constant_factor_moves_with_it(factor):
    model = FloatModel(x=SHAPE)
    clipped = model.add(
        "Clip",
        model.add("Add", "x", "x"),
        np.float32(0),
        np.float32(1.5),
    )
    model.add("Mul", clipped, np.float32(factor), name="y")
    program = convert(model, "y")
    far = np.full(SHAPE, 3.0, np.float32)
    found = run_real(program, {"x": far})["y"]
    assert found == pytest.approx(1.5 * factor, rel=0.02)


def test_factors_of_channels_cost_no_more_than_one_factor():
    """A sum with no clip pending is scaled as it is."""
    names = []
    for factor in (np.float32(2), np.float32([2, 3, 4, 5])):
        model = FloatModel(x=SHAPE, z=SHAPE)
        total = model.add("Add", "x", "z")
        model.add("Mul", total, factor, name="y")
        program = convert(model, "y")
        names.append([item.name for item in program.instructions])
    assert names[0] == names[1]


def any_i32(net: LoweringContext) -> ir.Value:
    """A float value that may be any integer of i32."""
    type_ = TensorType("i32", SHAPE)
    item = Input("x", type_, -(2**31), 2**31 - 1)
    handle = net.builder.input(item, Meaning(1.0, 0))
    net._tensors["one"] = Tensor(handle, np.ones(1), 0, (0, 1))
    return ir.Value(name="one", shape=ir.Shape(SHAPE))


def proven_of(operator: str, net: LoweringContext, *operands: ir.Value):
    """The interval of the operator's result."""
    node = ir.node(operator, operands)
    (result,) = node.outputs
    result.name = "other"
    result.shape = ir.Shape(SHAPE)
    RULES[operator](net, node)
    proven = net.builder.bounds[net.as_computed(result).value]
    return proven.min, proven.max


@pytest.mark.parametrize(
    ("operator", "least"), [("Neg", 1 - 2**31), ("Abs", 0)]
)
def test_the_least_integer_alone_gives_way_to_its_neighbour(operator, least):
    """-2^31 has no negative in i32; that of -2^31 + 1 is the greatest integer."""
    net = context()
    interval = proven_of(operator, net, any_i32(net))
    assert interval == (least, 2**31 - 1)


@pytest.mark.parametrize("constant", [1e9, -1e9])
def test_a_sum_of_numbers_far_beyond_the_range_measured_fits_i32(constant):
    """Both stop at the bounds of half of i32, at a scale chosen for results of 8."""
    net = context()
    array = ir.tensor(np.full(SHAPE, constant, np.float32))
    other = ir.Value(name="c", shape=array.shape, const_value=array)
    found = proven_of("Add", net, any_i32(net), other)
    stop = 2**30 - 1 if constant > 0 else -(2**30)
    assert found == (-(2**30) + stop, 2**30 - 1 + stop)


@pytest.mark.parametrize(("low", "stays"), [(0.0, True), (1.0, False)])
def test_only_a_clip_at_0_is_left_for_later_behind_factors_by_channel(
    low, stays
):
    net = context()
    item = Input("x", TensorType("i32", (1, 3)), -100, 100)
    handle = net.builder.input(item, Meaning(0.25, 0))
    value = ir.Value(name="one", shape=ir.Shape([1, 3]))
    net.define(value, Tensor(handle, np.array([0.25]), 0, (0, 1), low=low))
    x = net.as_computed(value)
    found = _scaled(net, value, x, np.array([1.0, 2.0, 3.0]))
    assert (found.value == handle) == stays
