"""Steps that read the same weights in the same order share one packing of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pytest

from cvm.program import (
    Attribute,
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

SEVERAL = 5
PLAIN = {"pad": (1, 1, 1, 1), "stride": (1, 1), "dilation": (1, 1)}
TRANSPOSED = {"out_pad": (0, 0, 0, 0), "stride": (1, 1), "groups": 1}
LAYERS: dict[str, tuple[str, tuple[int, ...], Mapping[str, Attribute]]] = {
    "dense": ("dense", (33, 40), {}),
    "3x3": ("conv2d", (20, 3, 3, 16), {**PLAIN, "groups": 1}),
    "groups": ("conv2d", (20, 3, 3, 8), {**PLAIN, "groups": 2}),
    "depthwise": ("conv2d", (19, 3, 3, 1), {**PLAIN, "groups": 19}),
    "multiplied": ("conv2d", (38, 3, 3, 1), {**PLAIN, "groups": 19}),
    "transposed": ("conv2d_transpose", (6, 3, 3, 5), TRANSPOSED),
}  # fmt: skip


def shape_of(
    weights: Sequence[int], groups: int, level: int
) -> tuple[int, ...]:
    """Of an input: rows for a matrix, or an image of another size for each level."""
    if len(weights) == 2:
        return (1 + level, weights[1])
    return (1, 13 + level, 14 - level, weights[3] * groups)


def program(layer: str, weights: IntArray, dtypes: Sequence[str]) -> Program:
    """Each layer reads a clamped input, with zero point and biases of its own, and all read `weights`."""
    name, _, attributes = LAYERS[layer]
    groups = int(str(attributes.get("groups", 1)))
    rng, count = np.random.default_rng(1), len(dtypes)
    inputs = tuple(
        Input(f"x{i}", TensorType(dtype, shape_of(weights.shape, groups, i)), -128, 127)
        for i, dtype in enumerate(dtypes)
    )  # fmt: skip
    biases = [
        rng.integers(-999, 999, len(weights)).astype(np.int32) for _ in dtypes
    ]
    first = 2 * count + 1
    clamps = [
        Instruction("clamp", (i,), {"min": -100, "max": 100})
        for i in range(count)
    ]
    steps = [
        Instruction(
            name,
            (first + i, count, count + 1 + i),
            {"input_zp": i - 2 if dtype == "i8" else 0, **attributes},
        )
        for i, dtype in enumerate(dtypes)
    ]
    outputs = tuple(Output(f"y{i}", first + count + i) for i in range(count))
    return Program(inputs, (weights, *biases), (*clamps, *steps), outputs)


def packed(layer: str, dtypes: Sequence[str], isa: str) -> int:
    """The bytes of packed weights, after the engine's results were compared with the reference's."""
    rng = np.random.default_rng(0)
    weights = rng.integers(-128, 128, LAYERS[layer][1]).astype(np.int8)
    form = validate(program(layer, weights, dtypes))
    sample = {
        item.name: rng.integers(-128, 128, item.type.shape).astype(
            np.int8 if item.type.dtype == "i8" else np.int16
        )
        for item in form.program.inputs
    }
    engine = Engine(form, isa=isa)
    found, expected = engine.run(sample, threads=2), run(form, sample)
    for name, value in expected.items():
        np.testing.assert_array_equal(found[name], value, name)
    return int(engine.core.packed_bytes)


@pytest.mark.parametrize("isa", native.isas() or ["none"])
@pytest.mark.parametrize("layer", LAYERS)
def test_steps_share_what_they_read(layer, isa):
    """Whatever their biases, zero points and sizes of images."""
    one = packed(layer, ["i8"], isa)
    assert one > 0
    assert packed(layer, ["i8"] * SEVERAL, isa) == one


@pytest.mark.parametrize("isa", native.isas() or ["none"])
@pytest.mark.parametrize("layer", LAYERS)
def test_rows_of_bytes_and_of_words_have_weights_of_their_own(layer, isa):
    """Two orders where kernels have two, so that none reads what was packed for another."""
    both = packed(layer, ["i8", "i16", "i8", "i16"], isa)
    apart = packed(layer, ["i8"], isa) + packed(layer, ["i16"], isa)
    same = ("multiplied", "transposed")
    assert both == (apart // 2 if layer in same else apart)


@pytest.mark.parametrize("isa", native.isas() or ["none"])
def test_weights_of_equal_size_are_not_taken_for_each_other(isa):
    """Two constants in one order."""
    rng = np.random.default_rng(3)
    x = Input("x", TensorType("i8", (2, 8)), -128, 127)
    constants = (
        rng.integers(-128, 128, (8, 8)).astype(np.int8),
        np.zeros(8, np.int32),
        rng.integers(-128, 128, (8, 8)).astype(np.int8),
    )
    steps = [
        Instruction("dense", (0, weights, 2), {"input_zp": 0})
        for weights in (1, 3)
    ]
    outputs = (Output("a", 4), Output("b", 5))
    form = validate(Program((x,), constants, tuple(steps), outputs))
    sample = {"x": rng.integers(-128, 128, (2, 8)).astype(np.int8)}
    found, expected = Engine(form, isa=isa).run(sample), run(form, sample)
    np.testing.assert_array_equal(found["a"], expected["a"])
    np.testing.assert_array_equal(found["b"], expected["b"])
