"""Rescales in 32 bits in exported C: the reference's bytes, at the ends of what is proven and where constants are shared."""

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
from tests.support.c_programs import SANITIZERS, CProgram, needs

Factors = tuple[int, int]  # a multiplier and a shift
TO_BYTES = {"input_zp": 0, "output_zp": -128, "dtype": "i8"}

pytestmark = needs("gcc")


def rescales(low: int, high: int, *all_factors: Factors) -> Program:
    """Return x [5] of i32, rescaled to i8 by each of the factors; equal multipliers and equal shifts are one constant."""
    numbers: list[IntArray] = []
    places: dict[tuple[type, int], int] = {}
    for multiplier, shift in all_factors:
        for dtype, number in ((np.int32, multiplier), (np.int8, shift)):
            if (dtype, number) not in places:
                numbers.append(np.array([number], dtype))
                places[dtype, number] = len(numbers)
    operands = [
        (0, places[np.int32, multiplier], places[np.int8, shift])
        for multiplier, shift in all_factors
    ]
    first = 1 + len(numbers)
    return Program(
        (Input("x", TensorType("i32", (5,)), low, high),),
        tuple(numbers),
        tuple(Instruction("rescale", item, TO_BYTES) for item in operands),
        tuple(Output(f"y{i}", first + i) for i in range(len(operands))),
    )


def assert_agrees(program: Program, x: list[int], folder) -> None:
    form = validate(program)
    assert all(facts.fits32 for facts in form.rescales.values())
    written = CProgram.write(form, folder)
    sample = {"x": np.array(x, np.int32)}
    expected = run(form, sample)
    (found,) = written.run(written.build("gcc", *SANITIZERS), samples=[sample])
    for name, array in expected.items():
        np.testing.assert_array_equal(found[name], array, name)


@pytest.mark.parametrize(
    "factors",
    [
        ((1 << 30, 34), (3 << 29, 34)),  # one shift, of which 4 and 5 are left
        (
            (1 << 30, 40),
            (1 << 30, 25),
        ),  # one multiplier, of which 1 and 2^6 are left
    ],
    ids=["shift", "multiplier"],
)
def test_two_rescales_may_share_a_constant(
    factors: tuple[Factors, ...], tmp_path
) -> None:
    x = [-50, -37, 0, 30, 49]
    assert_agrees(rescales(-50, 50, *factors), x, tmp_path)


def test_a_product_may_be_less_than_32_bits_hold_before_the_half(
    tmp_path,
) -> None:
    least = (
        -524_466
    )  # times 4095 it is 204,622 less than -2^31; the half is 524,288
    program = rescales(least, 1000, (4095 << 19, 39))
    assert_agrees(program, [least, least + 1, 0, 500, 1000], tmp_path)
