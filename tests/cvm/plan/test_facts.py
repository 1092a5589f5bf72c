"""What the engine takes from the proof, at the very ends of what it may assume."""

import numpy as np
import pytest

from cvm.plan.facts import linear_attributes, stage_attributes
from cvm.program import Input, Instruction, Output, Program, TensorType
from cvm.proof.validate import Proven, check, validate

CHANNELS = 16
WEIGHT = -128  # so that 16 products of x and it are -2^11 x


def convolution(low: int, high: int, biases: list[int]) -> Program:
    """A 1x1 convolution of i16 in low..high, whose sums are -2^11 x and a bias."""
    weights = np.full((len(biases), 1, 1, CHANNELS), WEIGHT, np.int8)
    return Program(
        (Input("x", TensorType("i16", (1, 1, 1, CHANNELS)), low, high),),
        (weights, np.array(biases, np.int32)),
        (
            Instruction(
                "conv2d",
                (0, 1, 2),
                {
                    "stride": (1, 1),
                    "dilation": (1, 1),
                    "pad": (0, 0, 0, 0),
                    "groups": 1,
                    "input_zp": 0,
                },
            ),
        ),
        (Output("y", 3),),
        None,
    )


def attributes_of(program: Program) -> dict:
    form = validate(program)
    assert isinstance(form, Proven)
    return linear_attributes(form, 3, program.instructions[0])


@pytest.mark.parametrize(
    ("low", "high", "biases", "fits"),
    [
        (0, 2**14, [0], True),  # sums from -2^25
        (0, 2**14 + 1, [0], False),
        (-(2**14) + 1, 0, [0], True),  # sums below 2^25
        (-(2**14), 0, [0], False),  # 2^25 itself is too much
        (0, 2**14, [2**20], True),  # the bias is no part of the sums
        (0, 2**14, [-(2**20)], True),
        (0, 2**14, [-5, 5], False),  # nor is it known which channel has it
        (-(2**14) + 1, 0, [-5, 5], True),
        (-(2**14) + 1, 0, [-(2**11), 0], False),
    ],
)
def test_sums_fit_26_bits(low, high, biases, fits):
    found = attributes_of(convolution(low, high, biases))
    assert found.get("fits26") == ((1,) if fits else None)


def test_what_is_not_proven_fits_nothing():
    program = convolution(0, 1, [0])
    found = linear_attributes(check(program), 3, program.instructions[0])
    assert "fits26" not in found


def rescaling(low: int, high: int, zero_point: int) -> Program:
    """x - zero_point in i32, times 2^31 / 2^30: twice as much before it saturates."""
    return Program(
        (Input("x", TensorType("i32", (1, 2)), low, high),),
        (np.array([2**30], np.int32), np.array([29], np.int8)),
        (
            Instruction(
                "rescale",
                (0, 1, 2),
                {"input_zp": zero_point, "output_zp": 0, "dtype": "i32"},
            ),
        ),
        (Output("y", 3),),
        None,
    )


@pytest.mark.parametrize(
    ("low", "high", "zero_point", "narrow"),
    [
        (0, 2**30 - 1, 0, True),  # twice that is 2^31 - 2
        (0, 2**30, 0, False),
        (-(2**30), 0, 0, True),
        (-(2**30) - 1, 0, 0, False),
    ],
)
def test_a_rescale_is_narrow_if_all_results_fit_32_bits(
    low, high, zero_point, narrow
):
    program = rescaling(low, high, zero_point)
    form = validate(program)
    found = stage_attributes(form, 3, program.instructions[0])
    assert found.get("narrow") == ((1,) if narrow else None)


def rescaled_sums(biases: list[int]) -> Program:
    """A convolution's two channels, the first times 1/1024, the second times 2, to 16 bits."""
    sums = convolution(0, 1, biases)
    (conv2d,) = sums.instructions
    attributes = {"input_zp": 0, "output_zp": 0, "dtype": "i16"}
    return Program(
        sums.inputs,
        (
            *sums.constants,
            np.array([2**30, 2**30], np.int32),
            np.array([40, 29], np.int8),
        ),
        (conv2d, Instruction("rescale", (5, 3, 4), attributes)),
        (Output("y", 6),),
        None,
    )


@pytest.mark.parametrize(
    ("biases", "narrow"),
    [
        ([2**30, 2**30 - 1], True),  # twice the second is 2^31 - 2
        ([2**30, 2**30], False),
        ([-(2**31) + 2**11, 3], True),
        ([3, -(2**30) + 2**11], True),  # sums from -2^11
        ([3, -(2**30) + 2**11 - 1], False),
    ],
)
def test_a_rescale_is_narrow_if_that_of_each_channel_is(biases, narrow):
    """A channel with a small scale, as a dead one has, may have a great bias."""
    program = rescaled_sums(biases)
    found = stage_attributes(validate(program), 6, program.instructions[1])
    assert found.get("narrow") == ((1,) if narrow else None)


@pytest.mark.parametrize(
    ("bias", "dtype", "multiplier", "fits"),
    [
        (0, "i8", 2**30, True),
        # bias + 2^9 + 255 * 2^10 is at most 2^31 - 1
        (2**31 - 1 - 2**9 - 255 * 2**10, "i8", 2**30, True),
        (2**31 - 2**9 - 255 * 2**10, "i8", 2**30, False),
        (0, "i8", 2**30 + 1, False),  # 31 bits
        (0, "i16", 2**30, False),
    ],
)
def test_products_fit_32_bits_if_those_of_each_channel_do(
    bias: int, dtype: str, multiplier: int, fits: bool
) -> None:
    sums = convolution(0, 1, [0, bias])  # sums of -2^11..0, and a bias
    (conv2d,) = sums.instructions
    attributes = {"input_zp": 0, "output_zp": 0, "dtype": dtype}
    program = Program(
        sums.inputs,
        (
            *sums.constants,
            np.array([multiplier], np.int32),
            np.array([40], np.int8),
        ),
        (conv2d, Instruction("rescale", (5, 3, 4), attributes)),
        (Output("y", 6),),
        None,
    )
    found = stage_attributes(validate(program), 6, program.instructions[1])
    assert found.get("fits32") == ((1,) if fits else None)
