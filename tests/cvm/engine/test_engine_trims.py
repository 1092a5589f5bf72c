"""Slices that only cut off what no whole step of a convolution reaches: the reference's bytes without a step of their own."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from cvm.plan.fuse import fused
from cvm.program import (
    DTYPE_RANGES,
    DTYPES,
    Attribute,
    Input,
    Instruction,
    Output,
    Program,
    TensorType,
)
from cvm.proof.validate import Proven, validate
from cvm.reference.interpreter import run
from cvm.runtime import native

pytestmark = pytest.mark.skipif(
    not native.available(), reason="the native engine is not built"
)


def trimmed(
    whole: tuple[int, int],
    part: tuple[int, int],
    kernel: int,
    stride: int,
    pad: Sequence[int],
    groups: int,
    dtype: str,
) -> Program:
    """clamp, slice, conv2d of 24 channels."""
    random = np.random.default_rng(kernel)
    w = random.integers(-128, 128, (24, kernel, kernel, 24 // groups)).astype(
        np.int8
    )
    shape = {"start": (0, 0, 0, 0), "size": (2, *part, 24)}
    geometry: dict[str, Attribute] = {
        "pad": tuple(pad),
        "stride": (stride, stride),
        "dilation": (1, 1),
        "groups": groups,
        "input_zp": 0,
    }
    instructions = (
        Instruction("clamp", (0,), {"min": -100, "max": 90}),
        Instruction("slice", (3,), shape),
        Instruction("conv2d", (4, 1, 2), geometry),
    )
    x = Input("x", TensorType(dtype, (2, *whole, 24)), *DTYPE_RANGES[dtype])
    return Program(
        (x,),
        (w, np.arange(24, dtype=np.int32)),
        instructions,
        (Output("y", 5),),
    )


def assert_agrees(form: Proven) -> None:
    random = np.random.default_rng(7)
    sample = {
        item.name: random.integers(
            item.lo, item.hi + 1, item.type.shape
        ).astype(DTYPES[item.type.dtype])
        for item in form.program.inputs
    }
    expected = run(form, sample)["y"]
    for isa in native.isas():
        for threads in (1, 3):
            np.testing.assert_array_equal(
                native.Engine(form, isa=isa).run(sample, threads=threads)["y"],
                expected,
                isa,
            )


@pytest.mark.parametrize("dtype", ["i8", "i16"])
@pytest.mark.parametrize("groups", [1, 3, 24])
@pytest.mark.parametrize(
    ("whole", "part", "kernel", "stride", "pad"),
    [
        ((8, 8), (7, 7), 1, 2, (0, 0, 0, 0)),
        ((9, 8), (9, 7), 3, 2, (0, 0, 0, 0)),
        ((6, 9), (6, 7), 3, 4, (1, 0, 0, 0)),
        ((8, 7), (7, 7), 3, 2, (0, 0, 1, 1)),
    ],
)
def test_a_convolution_reads_past_a_slice(
    whole: tuple[int, int],
    part: tuple[int, int],
    kernel: int,
    stride: int,
    pad: Sequence[int],
    groups: int,
    dtype: str,
) -> None:
    form = validate(trimmed(whole, part, kernel, stride, pad, groups, dtype))
    assert "slice" not in [step.name for step in fused(form).steps]
    assert_agrees(form)


def test_what_is_cut_off_and_within_reach_stays_cut_off() -> None:
    form = validate(trimmed((8, 8), (7, 7), 3, 2, (0, 2, 0, 2), 1, "i8"))
    assert "slice" in [step.name for step in fused(form).steps]
    assert_agrees(form)


@pytest.mark.parametrize(
    ("whole", "part", "kernel", "stride"),
    [
        ((8, 8), (7, 8), 3, 1),  # one row of outputs fewer
        ((9, 9), (9, 7), 3, 2),  # one column of outputs fewer
        ((5, 5), (4, 4), 1, 1),
    ],
)
def test_a_slice_that_cuts_off_a_step_of_the_convolution_stays(
    whole: tuple[int, int], part: tuple[int, int], kernel: int, stride: int
) -> None:
    """Without the slice the convolution would give one more row or column."""
    form = validate(trimmed(whole, part, kernel, stride, (0, 0, 0, 0), 1, "i8"))
    assert "slice" in [step.name for step in fused(form).steps]
    assert_agrees(form)


def test_a_slice_that_a_convolution_adds_to_its_sums_is_still_one() -> None:
    geometry: dict[str, Attribute] = {
        "pad": (0,) * 4,
        "stride": (2, 2),
        "dilation": (1, 1),
        "groups": 1,
        "input_zp": 0,
    }
    instructions = (
        Instruction("conv2d", (0, 2, 3), geometry),
        Instruction("negate", (1,), {"input_zp": 0, "output_zp": 0}),
        Instruction("slice", (5,), {"start": (0,) * 4, "size": (1, 4, 4, 6)}),
        Instruction("add", (4, 6), {}),
    )
    w = (
        np.random.default_rng(0)
        .integers(-128, 128, (6, 2, 2, 4))
        .astype(np.int8)
    )
    x = Input("x", TensorType("i8", (1, 8, 8, 4)), -128, 127)
    more = Input("more", TensorType("i32", (1, 5, 5, 6)), -1000, 1000)
    program = Program(
        (x, more), (w, np.zeros(6, np.int32)), instructions, (Output("y", 7),)
    )
    assert_agrees(validate(program))


@pytest.mark.parametrize("kept", [(1, 4, 4, 4), (2, 4, 4, 2)])
def test_a_slice_of_pictures_or_channels_stays(
    kept: tuple[int, int, int, int],
) -> None:
    """A convolution of what is left reaches every row and column of all pictures and channels."""
    geometry: dict[str, Attribute] = {
        "pad": (0,) * 4,
        "stride": (1, 1),
        "dilation": (1, 1),
        "groups": 1,
        "input_zp": 0,
    }
    instructions = (
        Instruction("clamp", (0,), {"min": -100, "max": 90}),
        Instruction("slice", (3,), {"start": (0,) * 4, "size": kept}),
        Instruction("conv2d", (4, 1, 2), geometry),
    )
    w = np.arange(6 * kept[3], dtype=np.int8).reshape(6, 1, 1, kept[3])
    x = Input("x", TensorType("i8", (2, 4, 4, 4)), -128, 127)
    constants = (w, np.zeros(6, np.int32))
    form = validate(Program((x,), constants, instructions, (Output("y", 5),)))
    assert "slice" in [step.name for step in fused(form).steps]
    assert_agrees(form)
