"""Rescales to bytes whose products fit 32 bits, by every instruction set: the reference's bytes."""

from __future__ import annotations

from dataclasses import replace

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
from tests.support.convolution_programs import (
    CONVOLUTIONS,
    POINTS,
    SQUARE,
    Convolution,
    assert_engine_agrees,
)

pytestmark = pytest.mark.skipif(
    not native.available(), reason="the native engine is not built"
)

WORDS = {
    "depthwise": Convolution("conv2d", (1, 5, 7, 37), (3, 3), 37, SQUARE),
    "points": Convolution("conv2d", (1, 5, 3, 7), (1, 1), 70, POINTS, groups=1),
}  # fmt: skip


def fits(case: Convolution, seed: int) -> bool:
    form = validate(case.program(seed))
    return any(facts.fits32 for facts in form.rescales.values())


@pytest.mark.parametrize("case", CONVOLUTIONS.values(), ids=CONVOLUTIONS)
@pytest.mark.parametrize("stages", ["rescale", "clamp"])
@pytest.mark.parametrize(
    "bits, shifts", [(1, (31, 44)), (7, (31, 43)), (10, (24, 40))]
)
def test_sums_of_bytes(
    case: Convolution, stages: str, bits: int, shifts: tuple[int, int]
) -> None:
    """Shifts of fewer than 32 among them, which vectors had to leave to an operation after the other."""
    for seed, per_channel in enumerate((True, False, True)):
        tried = replace(
            case,
            stages=stages,
            bits=bits,
            shifts=shifts,
            per_channel=per_channel,
            input_zp=(0, 127, -128)[seed],
        )
        assert fits(tried, seed)
        assert_engine_agrees(tried, seed)


@pytest.mark.parametrize("case", WORDS.values(), ids=WORDS)
def test_sums_of_words(case: Convolution) -> None:
    """Half of them overflow 32 bits with multipliers of 7 bits, so that 2 are left."""
    tried = replace(
        case, dtype="i16", stages="rescale", bits=2, shifts=(36, 51)
    )
    assert fits(tried, 0)
    assert_engine_agrees(tried)


@pytest.mark.parametrize("zero_point", [-128, 5])
@pytest.mark.parametrize("multiplied_by_zero", [False, True])
def test_every_sum_up_to_the_last_that_fits(
    multiplied_by_zero: bool, zero_point: int
) -> None:
    """Sums of one product and a bias: 127 * -128 .. 127 * 127, plus what makes 32 bits full, or one too many.

    A product by 0 gives the zero point, which a bias can't hold unless it is the least.
    """
    greatest = GREATEST if zero_point == -128 else GREATEST - 133 * 256
    for bias, fits32 in ((greatest, True), (GREATEST + 1, False)):
        program = one_product(bias, multiplied_by_zero, zero_point)
        assert assert_every_sum(program) == fits32


def test_sums_that_keep_their_scale() -> None:
    """Their multiplier is even in short form, 2 for a shift of 1."""
    program = one_product(0, False, 5)
    ones = np.full(2, 2**30, np.int32), np.full(2, 30, np.int8)
    weights = np.array([[1], [-1]], np.int8)
    constants = (weights, program.constants[1], *ones)
    assert assert_every_sum(replace(program, constants=constants))


def assert_every_sum(program: Program) -> bool:
    """Compare the engine with the reference for all x; whether products fit 32 bits."""
    form = validate(program)
    x = np.arange(-128, 128).astype(np.int8).reshape(256, 1)
    expected = run(form, {"x": x})["y"]
    for isa in native.isas():
        found = native.Engine(form, isa=isa).run({"x": x})["y"]
        np.testing.assert_array_equal(found, expected, isa)
    return form.rescales[6].fits32


FACTOR, SHIFT = 4095, 20
# (2^31 - 1 - half - 255 * 2^20) // 4095, less the greatest product
GREATEST = 458_992 - 127 * 127


def one_product(
    bias: int, multiplied_by_zero: bool, zero_point: int
) -> Program:
    """Return x [256,1] times 127, with a bias, rescaled to bytes of two columns; the first of them perhaps by 0."""
    factors: IntArray = np.array([FACTOR << 19, FACTOR << 19], np.int32)
    shifts = np.array([SHIFT + 19, SHIFT + 19], np.int8)
    if multiplied_by_zero:
        factors[0], shifts[0] = 0, 62
    constants = (
        np.full((2, 1), 127, np.int8),
        np.array([0, bias], np.int32),
        factors,
        shifts,
    )
    rescale = {"input_zp": 0, "output_zp": zero_point, "dtype": "i8"}
    return Program(
        (Input("x", TensorType("i8", (256, 1)), -128, 127),),
        constants,
        (
            Instruction("dense", (0, 1, 2), {"input_zp": 0}),
            Instruction("rescale", (5, 3, 4), rescale),
            # Behind it, bytes are stored as between steps.
            Instruction("reverse", (6,), {"axis": 0}),
        ),
        (Output("y", 7),),
    )
