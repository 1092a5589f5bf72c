"""Products of 16-bit values with weights in two halves are one step, with the reference's integers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import pytest

from cvm.program import (
    Attribute,
    Input,
    Instruction,
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

WINDOW = {"pad": (1, 1, 1, 1), "stride": (1, 1), "dilation": (1, 1)}
POINT = {**WINDOW, "pad": (0, 0, 0, 0), "groups": 1}


@dataclass(frozen=True)
class Layer:
    """A product, and its weights and the greatest x."""

    name: str
    weights: tuple[int, ...]
    shape: tuple[int, ...]
    attributes: Mapping[str, Attribute]
    most: int
    low_bits: int = 4
    dtype: str = "i16"
    after: str = "i16"

    def program(self, seed: int) -> Program:
        """high << low_bits, plus low, rescaled and clamped; it is transposed, so that bytes were in stored form before."""
        rng = np.random.default_rng(seed)
        outputs, rank = self.weights[0], len(self.shape)
        halves = [
            rng.integers(-128, 128, self.weights).astype(np.int8)
            for _ in range(2)
        ]
        biases = [
            rng.integers(-5000, 5000, outputs).astype(np.int32)
            for _ in range(2)
        ]
        amount = np.full([1] * rank, self.low_bits, np.int32)
        scales = [
            rng.integers(1 << 30, 1 << 31, outputs).astype(np.int32),
            rng.integers(40, 46, outputs).astype(np.int8),
        ]
        x = Input(
            "x", TensorType(self.dtype, self.shape), -self.most, self.most
        )
        product = {"input_zp": 0, **self.attributes}
        after = {
            "input_zp": 0,
            "output_zp": 3 if self.after == "i8" else 0,
            "dtype": self.after,
        }
        return Program(
            (x,),
            (halves[0], biases[0], halves[1], biases[1], amount, *scales),
            (
                Instruction(self.name, (0, 1, 2), product),
                Instruction(self.name, (0, 3, 4), product),
                Instruction("shift_left", (8, 5), {}),
                Instruction("add", (10, 9), {}),
                Instruction("rescale", (11, 6, 7), after),
                Instruction("clamp", (12,), {"min": -90, "max": 100}),
                Instruction("transpose", (13,), {"perm": (0, 2, 1, 3) if rank == 4 else (1, 0)}),
            ),
            (Output("y", 14),),
        )  # fmt: skip

    def steps(self) -> list[str]:
        """The plan's steps, and that every instruction set gives the reference's integers."""
        program = self.program(seed=len(self.shape) + self.low_bits)
        form, (x,) = validate(program), program.inputs
        rng = np.random.default_rng(7)
        dtype = np.int16 if self.dtype == "i16" else np.int8
        sample = {"x": rng.integers(x.lo, x.hi + 1, x.type.shape).astype(dtype)}
        (expected,) = run(form, sample).values()
        for isa in native.isas():
            engine = Engine(form, isa=isa)
            (found,) = engine.run(sample, threads=2).values()
            np.testing.assert_array_equal(found, expected, isa)
        names = [step.name for step in engine.plan.steps]
        return [name for name in names if name not in ("transpose", "reshape")]


LAYERS = {
    "dense": Layer("dense", (33, 40), (3, 40), {}, most=9000),
    "1x1": Layer("conv2d", (35, 1, 1, 24), (1, 5, 7, 24), POINT, most=9000),
    "first": Layer("conv2d", (8, 3, 3, 3), (1, 9, 8, 3), {**WINDOW, "groups": 1}, most=9000),
    "3x3": Layer("conv2d", (20, 3, 3, 16), (1, 6, 5, 16), {**WINDOW, "groups": 1}, most=2000),
    "groups": Layer("conv2d", (20, 3, 3, 8), (2, 6, 5, 16), {**WINDOW, "groups": 2}, most=4000),
    "depthwise": Layer("conv2d", (19, 3, 3, 1), (1, 6, 5, 19), {**WINDOW, "groups": 19}, most=32767),
    "depthwise 5x5": Layer("conv2d", (19, 5, 5, 1), (1, 6, 5, 19), {**WINDOW, "pad": (2, 2, 2, 2), "groups": 19}, most=20000),
}  # fmt: skip


@pytest.mark.parametrize("after", ["i8", "i16"])
@pytest.mark.parametrize("layer", LAYERS)
def test_both_halves_are_one_step(layer, after):
    found = replace(LAYERS[layer], after=after).steps()
    assert found == [LAYERS[layer].name]


@pytest.mark.parametrize("low_bits", [1, 7])
@pytest.mark.parametrize("layer", LAYERS)
def test_the_least_and_the_most_low_bits(layer, low_bits):
    few = replace(LAYERS[layer], most=700, low_bits=low_bits, after="i8")
    assert few.steps() == [few.name]


def test_sums_that_only_their_bias_holds_inside_32_bits():
    """Kernels in registers add the bias last; a sum without it is beyond, with it inside."""
    layer = LAYERS["depthwise"]
    program = replace(layer, after="i8", low_bits=7).program(1)
    _, _, _, _, *scales = program.constants
    high = np.full(layer.weights, 127, np.int8)
    low = np.full(layer.weights, 127, np.int8)
    bias = np.full(19, -(2**30), np.int32)
    over = np.full(19, -(2**30) // 128, np.int32)
    x = replace(program.inputs[0], lo=0, hi=20000)
    program = replace(
        program, inputs=(x,), constants=(high, over, low, bias, *scales)
    )
    form = validate(program)
    sample = {"x": np.full(layer.shape, 20000, np.int16)}
    (expected,) = run(form, sample).values()
    assert expected.max() == 100
    for isa in native.isas():
        (found,) = Engine(form, isa=isa).run(sample).values()
        np.testing.assert_array_equal(found, expected, isa)


def test_bytes_keep_two_products():
    """Their kernels hold weights of bytes."""
    layer = replace(LAYERS["1x1"], dtype="i8", most=127, after="i8")
    assert layer.steps().count("conv2d") == 2


def test_several_outputs_of_a_channel_keep_two_products():
    layer = replace(
        LAYERS["depthwise"], weights=(38, 3, 3, 1), most=9000, after="i8"
    )
    assert layer.steps() == ["conv2d", "conv2d"]


def changed(instructions, outputs=(14,)):
    """The steps of a dense whose instructions are others."""
    program = LAYERS["dense"].program(1)
    items = list(program.instructions)
    for place, item in instructions.items():
        items[place] = item
    ends = tuple(Output(f"y{value}", value) for value in outputs)
    form = validate(replace(program, instructions=tuple(items), outputs=ends))
    x = np.random.default_rng(3).integers(-9000, 9000, (3, 40))
    sample = {"x": x.astype(np.int16)}
    expected, engine = run(form, sample), Engine(form)
    for name, found in engine.run(sample).items():
        np.testing.assert_array_equal(found, expected[name])
    return sum(step.name == "dense" for step in engine.plan.steps)


def test_what_others_read_keeps_two_products():
    assert changed({}) == 1
    for value in (8, 9, 10):
        assert changed({}, (14, value)) == 2


def test_other_sums_keep_two_products():
    """The low product comes first, or the high one is shifted to the right."""
    assert changed({3: Instruction("add", (9, 10), {})}) == 2
    right = Instruction("shift_right", (8, 5), {"round": True})
    assert changed({2: right}) == 2


@pytest.mark.parametrize("layer", LAYERS)
def test_two_sums_with_one_low_half(layer):
    """Their packed weights are not taken for each other's."""
    first = LAYERS[layer].program(5)
    high, bias, low, low_bias, amount, *_ = first.constants
    other = (high // 2 - 1).astype(np.int8)
    product = first.instructions[0]
    items = [
        replace(product, operands=(0, 1, 2)),
        replace(product, operands=(0, 3, 4)),
        Instruction("shift_left", (7, 5), {}),
        Instruction("add", (9, 8), {}),
        replace(product, operands=(0, 6, 2)),
        replace(product, operands=(0, 3, 4)),
        Instruction("shift_left", (11, 5), {}),
        Instruction("add", (13, 12), {}),
    ]
    form = validate(
        Program(
            first.inputs,
            (high, bias, low, low_bias, amount, other),
            tuple(items),
            (Output("a", 10), Output("b", 14)),
        )
    )
    x, rng = first.inputs[0], np.random.default_rng(7)
    sample = {"x": rng.integers(x.lo, x.hi + 1, x.type.shape).astype(np.int16)}
    expected = run(form, sample)
    for isa in native.isas():
        engine = Engine(form, isa=isa)
        assert len(engine.plan.steps) == 2
        for name, found in engine.run(sample).items():
            np.testing.assert_array_equal(found, expected[name], isa)


@pytest.mark.parametrize(
    ("x", "outputs", "amount"),
    [
        ((1, 3, 4, 6), 7, (5, 1, 1, 1)),
        ((1, 1, 4, 6), 7, (1, 3, 1, 1)),
        ((1, 3, 4, 6), 1, (1, 1, 1, 7)),
    ],
)
def test_a_shift_of_a_larger_shape_keeps_two_products(x, outputs, amount):
    """It repeats the high product, so that the sum has another shape than a product."""
    random = np.random.default_rng(1)
    halves = [
        array
        for _ in range(2)
        for array in (
            random.integers(-128, 128, (outputs, 1, 1, 6)).astype(np.int8),
            random.integers(-99, 99, outputs).astype(np.int32),
        )
    ]
    one = {"pad": (0,) * 4, "stride": (1, 1), "dilation": (1, 1), "groups": 1}
    attributes = {**one, "input_zp": 0}
    items = (
        Instruction("conv2d", (0, 1, 2), attributes),
        Instruction("conv2d", (0, 3, 4), attributes),
        Instruction("shift_left", (6, 5), {}),
        Instruction("add", (8, 7), {}),
    )
    form = validate(
        Program(
            (Input("x", TensorType("i16", x), -300, 300),),
            (*halves, np.full(amount, 4, np.int32)),
            items,
            (Output("y", 9),),
        )
    )
    sample = {"x": random.integers(-300, 300, x).astype(np.int16)}
    engine = Engine(form)
    assert sum(step.name == "conv2d" for step in engine.plan.steps) == 2
    np.testing.assert_array_equal(
        engine.run(sample)["y"], run(form, sample)["y"]
    )
