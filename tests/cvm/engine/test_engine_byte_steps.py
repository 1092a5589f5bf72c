"""Products of bytes that are added in 16 bits: exact at the greatest sums that fit there, and just beyond them."""

from __future__ import annotations

import numpy as np
import pytest

from cvm.program import (
    Input,
    Instruction,
    IntArray,
    Output,
    Program,
    TensorType,
)
from cvm.proof.validate import validate
from cvm.reference.interpreter import run
from cvm.runtime import native
from cvm.runtime.native import Engine

pytestmark = pytest.mark.skipif(
    not native.available(), reason="the native engine is not built"
)

AT_THE_LIMIT = [
    (64, 64),
    (127, 1),
    (1, 127),
    (-128, 0),
    (-1, -127),
    (127, -128),
]
BEYOND = [(127, 127), (65, 64), (-128, -1), (-128, -128), (2, 127)]
EXTREMES = (-128, 127)


def dense(weights: IntArray, zero_point: int) -> Program:
    """Return products of three rows, and their sums in 8 bits beside the sums themselves."""
    outputs, depth = weights.shape
    x = Input("x", TensorType("i8", (3, depth)), -128, 127)
    constants = (
        weights.astype(np.int8),
        np.arange(outputs, dtype=np.int32) * 100 - 1000,
        np.array([1 << 30], np.int32),
        np.array([42], np.int8),
    )
    scale = {"input_zp": 0, "output_zp": 3, "dtype": "i8"}
    return Program(
        (x,),
        constants,
        (
            Instruction("dense", (0, 1, 2), {"input_zp": zero_point}),
            Instruction("rescale", (5, 3, 4), scale),
        ),
        (Output("sums", 5), Output("y", 6)),
    )


def convolution(weights: IntArray, stride: int) -> Program:
    """Return a convolution whose windows leave the image."""
    outputs, kernel, _, channels = weights.shape
    x = Input("x", TensorType("i8", (1, 7, 7, channels)), -128, 127)
    pads = (kernel // 2,) * 4
    attributes = {"pad": pads, "stride": (stride,) * 2, "dilation": (1, 1)}
    return Program(
        (x,),
        (weights.astype(np.int8), np.zeros(outputs, np.int32)),
        (
            Instruction(
                "conv2d",
                (0, 1, 2),
                {**attributes, "groups": 1, "input_zp": 5},
            ),
        ),
        (Output("y", 3),),
    )


def samples(program: Program) -> list[dict[str, IntArray]]:
    """Return all places at one end, at the other, and anything."""
    (x,) = program.inputs
    random = np.random.default_rng(1)
    arrays = [np.full(x.type.shape, end, np.int8) for end in EXTREMES]
    arrays.append(random.integers(-128, 128, x.type.shape).astype(np.int8))
    return [{"x": array} for array in arrays]


def require_exact(program: Program) -> None:
    form = validate(program)
    for isa in native.isas():
        engine = Engine(form, isa=isa)
        for sample in samples(program):
            expected, found = run(form, sample), engine.run(sample)
            for name, array in expected.items():
                np.testing.assert_array_equal(found[name], array, isa)


def chosen(program: Program, isa: str) -> list[str]:
    """Return how each step's products are computed."""
    engine = Engine(validate(program), isa=isa)
    return [kind for kind in engine.core.products() if kind]


@pytest.mark.parametrize("columns", [1, 8, 9, 16, 21, 40])
@pytest.mark.parametrize("depth", [4, 6, 31, 64])
def test_pairs_at_the_limit_are_exact(depth, columns):
    random = np.random.default_rng(depth * columns)
    pairs = np.array(AT_THE_LIMIT)
    drawn = pairs[random.integers(0, len(pairs), (columns, depth))]
    weights = drawn.reshape(columns, -1)[:, :depth]
    require_exact(dense(weights, -128))


@pytest.mark.parametrize("pair", BEYOND)
def test_a_pair_beyond_the_limit_is_exact_among_small_ones(pair):
    """Its excess becomes a step of its own; all other steps add in 16 bits, in twos."""
    weights = np.random.default_rng(2).integers(-20, 21, (16, 64))
    weights[3, 10:12] = pair
    weights[4, 62:64] = pair
    program = dense(weights, -128)
    require_exact(program)
    if "avx2" in native.isas():
        assert chosen(program, "avx2") == ["bytes"]


@pytest.mark.parametrize("pairs", [AT_THE_LIMIT, BEYOND])
def test_steps_are_added_in_twos_only_where_both_fit(pairs):
    """Half of the weights are large, half small: heavy steps find light ones, or stay alone."""
    random = np.random.default_rng(7)
    weights = random.integers(-3, 4, (16, 96))
    weights[:, 0:8] = np.array(pairs)[
        random.integers(0, len(pairs), (16, 4))
    ].reshape(16, 8)
    weights[:, 40:48] = 60
    require_exact(dense(weights, 0))


def test_more_steps_than_are_tried_as_partners_are_exact():
    """Most steps fit no other; the light ones among them fit those that are tried, and each other."""
    random = np.random.default_rng(11)
    weights = random.integers(0, 65, (16, 1200))
    weights[:, 8::40] = 0
    weights[:, 400:440] = random.integers(-4, 5, (16, 40))
    weights[random.random(weights.shape) < 0.1] *= -1
    require_exact(dense(weights, 0))


@pytest.mark.parametrize("stride", [1, 2])
@pytest.mark.parametrize("kernel", [1, 3])
@pytest.mark.parametrize("channels", [3, 8])
def test_convolutions_with_small_weights_are_exact(channels, kernel, stride):
    random = np.random.default_rng(kernel + stride)
    shape = (18, kernel, kernel, channels)
    require_exact(convolution(random.integers(-64, 64, shape), stride))


@pytest.mark.skipif("avx2" not in native.isas(), reason="needs AVX2")
def test_weights_of_7_bits_are_multiplied_as_bytes_and_others_as_they_pay():
    random = np.random.default_rng(3)
    seven = dense(random.integers(-64, 65, (32, 256)), 0)
    eight = dense(random.choice([-127, 127], (32, 256)), 0)
    assert chosen(seven, "avx2") == ["bytes"]
    assert chosen(eight, "avx2") == ["words"]
