"""Rescales by multipliers of 15 bits and zeros, whose products vectors make of two halves: the reference's integers."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from cvm.program import Input, Instruction, Output, Program, TensorType
from cvm.proof.validate import validate
from cvm.reference.interpreter import run
from cvm.runtime import native
from tests.support.convolution_programs import (
    CONVOLUTIONS,
    POINTS,
    Convolution,
    assert_engine_agrees,
)

pytestmark = pytest.mark.skipif(
    not native.available(), reason="the native engine is not built"
)

CASES = {
    **CONVOLUTIONS,
    "deep points": Convolution("conv2d", (1, 4, 5, 64), (1, 1), 17, POINTS, groups=1),
}  # fmt: skip
SHIFTS = [(33, 33), (33, 54), (55, 62), (32, 40)]
"""Those of halves; too many; too few among them."""


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
@pytest.mark.parametrize(
    "bits, shifts", [*[(15, of_15) for of_15 in SHIFTS], (16, (33, 40))]
)
@pytest.mark.parametrize(
    ("dtype", "result"),
    [("i8", "i8"), ("i8", "i16"), ("i16", "i8"), ("i16", "i16")],
)
def test_sums_of_bytes_and_of_words(
    case: Convolution,
    bits: int,
    shifts: tuple[int, int],
    dtype: str,
    result: str,
) -> None:
    case = replace(case, shifts=shifts, result=result, bits=bits)
    for seed, stages in enumerate(("rescale", "clamp")):
        zero_point = (0, -128)[seed] if dtype == "i8" else 0
        tried = replace(case, stages=stages, dtype=dtype, input_zp=zero_point)
        assert_engine_agrees(replace(tried, per_channel=seed == 0), seed)


@pytest.mark.parametrize("result", ["i8", "i16"])
@pytest.mark.parametrize("multiplier", [2**14, 2**14 + 1, 2**15 - 1])
def test_the_least_and_the_greatest_sums(multiplier: int, result: str) -> None:
    """Every second column is near an end of 32 bits or of a half; one is multiplied by 0."""
    ends = (2**31 - 20000, 2**16, 2**15, 0, -(2**15), -(2**16), 20000 - 2**31)
    biases = np.repeat(np.array(ends, np.int32), 11)
    shifts = np.tile(np.arange(33, 55, 2, dtype=np.int8), len(ends))
    multipliers = np.full(len(biases), multiplier << 16, np.int32)
    multipliers[5], shifts[5] = 0, 62
    zero_point = -77 if result == "i8" else 0
    attributes = {"input_zp": 0, "output_zp": zero_point, "dtype": result}
    program = Program(
        (Input("x", TensorType("i8", (256, 1)), -128, 127),),
        (np.full((len(biases), 1), 127, np.int8), biases, multipliers, shifts),
        (
            Instruction("dense", (0, 1, 2), {"input_zp": 0}),
            Instruction("rescale", (5, 3, 4), attributes),
            # Behind it, bytes are stored as between steps.
            Instruction("reverse", (6,), {"axis": 0}),
        ),
        (Output("y", 7),),
    )
    form = validate(program)
    x = np.arange(-128, 128).astype(np.int8).reshape(256, 1)
    expected = run(form, {"x": x})["y"]
    for isa in native.isas():
        found = native.Engine(form, isa=isa).run({"x": x})["y"]
        np.testing.assert_array_equal(found, expected, isa)
