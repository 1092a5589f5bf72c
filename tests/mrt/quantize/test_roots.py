"""Roots and reciprocals in i32, on the reference machine, against Python's own integers."""

import math

import numpy as np
import pytest

from cvm.program import Input, Meaning, TensorType
from cvm.proof.validate import validate
from cvm.reference.interpreter import run
from mrt.quantize.builder import ProgramBuilder
from mrt.quantize.roots import Arithmetic, excess_bits, fine_root, inverse

NUMBERS = sorted(
    {
        0,
        1,
        2,
        3,
        4,
        5,
        2**31 - 1,
        *(2**k + d for k in range(2, 31) for d in (-1, 0, 1)),
        777,
        10**6 + 3,
    }
)


def evaluate(build, numbers):
    builder = ProgramBuilder()
    meaning = Meaning(1.0, 0, "x")
    x = builder.input(
        Input(
            "x", TensorType("i32", (len(numbers),)), min(numbers), max(numbers)
        ),
        meaning,
    )
    builder.output("y", build(Arithmetic(builder, 1), x), meaning)
    program = validate(builder.finish({}))
    return run(program, {"x": np.array(numbers, np.int32)})["y"].tolist()


@pytest.mark.parametrize("bits", [3, 8])
def test_a_root_is_right_to_a_step_or_the_curvature_of_one(bits):
    found = evaluate(lambda a, x: fine_root(a, x, bits), NUMBERS)
    for number, root in zip(NUMBERS, found, strict=True):
        exact = math.sqrt(number) * 2**bits
        assert abs(root - exact) <= 1 + 2**bits / (
            4 * (2 * math.isqrt(number) + 1)
        ), number


def test_an_inverse_is_the_nearest_integer():
    numbers = [number for number in NUMBERS if number]
    expected = [(2 * 2**30 + number) // (2 * number) for number in numbers]
    assert evaluate(inverse, numbers) == expected


def test_excess_bits_are_what_is_longer_than_asked():
    assert evaluate(lambda a, x: excess_bits(a, x, 15), NUMBERS) == [
        max(n.bit_length() - 15, 0) for n in NUMBERS
    ]
