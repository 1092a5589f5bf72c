"""Octave codes on the reference machine, against Python's own integers and fractions."""

from fractions import Fraction

import numpy as np
import pytest

from cvm.program import Input, Meaning, TensorType
from cvm.proof.validate import validate
from cvm.reference.interpreter import run
from mrt.quantize.builder import ProgramBuilder
from mrt.quantize.octaves import OctaveCode
from mrt.quantize.roots import Arithmetic

MEANING = Meaning(1.0, 0, "x")
GREATEST = 2**31 - 1
EDGES = sorted(
    {
        n + d
        for k in range(1, 31)
        for n in (2**k, 3 * 2**k // 2)
        for d in (-1, 0, 1)
    }
)
NUMBERS = [0, *EDGES, 777, 10**6 + 3, 123456789, GREATEST - 1, GREATEST]


def coded(code, numbers, octaves=None):
    """Return the code that a program computes for each number, as the integers of i16."""
    builder = ProgramBuilder()
    type_ = TensorType("i32", (len(numbers),))
    inputs = {"x": np.array(numbers, np.int32)}
    x = builder.input(
        Input(
            "x", type_, 0, 2**code.length - 1 if octaves is None else GREATEST
        ),
        MEANING,
    )
    shift = None
    if octaves is not None:
        inputs["e"] = np.array(octaves, np.int32)
        shift = builder.input(Input("e", type_, 0, max(octaves)), MEANING)
    result = code.encode(Arithmetic(builder, 1), x, shift)
    builder.output("y", result, MEANING)
    return run(validate(builder.finish({})), inputs)["y"].astype(int)


@pytest.mark.parametrize(
    ("length", "bits"),
    [(10, 10), (16, 15), (20, 13), (27, 12), (31, 12), (63, 11)],
)
def test_the_finest_code_has_as_many_bits_as_i16_can_tell_apart(length, bits):
    code = OctaveCode.finest(length)
    assert code.bits == bits
    assert code.count <= 65536
    assert bits == min(15, length) or OctaveCode(bits + 1, length).count > 65536


def test_codes_rise_with_numbers_and_small_numbers_are_their_own():
    numbers = OctaveCode(12, 31).numbers()
    assert numbers[:4096].tolist() == list(range(4096))
    used = numbers[: OctaveCode(12, 31).count]
    assert (np.diff(used) > 0).all() and used[-1] == 2**31
    assert (numbers[len(used) :] == 2**31).all()


@pytest.mark.parametrize("bits", [1, 5, 12])
def test_a_number_is_right_to_a_part_of_two_to_the_bits(bits):
    code = OctaveCode(bits, 31)
    found = code.numbers()[coded(code, NUMBERS) + 32768]
    for number, nearest in zip(NUMBERS, found.tolist(), strict=True):
        assert abs(Fraction(nearest) - number) * 2**bits <= number
        if number < 2**bits:
            assert nearest == number


def test_the_number_of_each_code_has_that_code():
    code = OctaveCode(6, 31)
    numbers = code.numbers()[: code.count - 1]
    assert (coded(code, numbers.tolist()) + 32768).tolist() == list(
        range(len(numbers))
    )


def test_octaves_multiply_the_number_by_a_power_of_two():
    code = OctaveCode(11, 63)
    numbers, octaves = [2**30, 2**28 + 12345, GREATEST, 7], [32, 4, 31, 0]
    found = code.numbers()[coded(code, numbers, octaves) + 32768]
    for number, shift, nearest in zip(
        numbers, octaves, found.tolist(), strict=True
    ):
        assert (
            abs(Fraction(nearest) - (number << shift)) * 2**11
            <= number << shift
        )


@pytest.mark.parametrize("length", [16, 31, 62, 63])
def test_numbers_and_codes_are_each_others_inverse(length):
    code = OctaveCode.finest(length)
    numbers = code.numbers()
    assert (np.diff(numbers) >= 0).all() and numbers[0] == 0
    used = numbers[: code.count - 1]
    assert (code.integers(used) + 32768).tolist() == list(range(len(used)))


def test_the_code_of_an_array_is_that_which_a_program_computes():
    code = OctaveCode(12, 31)
    found = code.integers(np.array(NUMBERS))
    assert found.tolist() == coded(code, NUMBERS).tolist()
