"""Facts that the engine takes from the proof: where fewer bits than 32, or than 64, are enough."""

from __future__ import annotations

import numpy as np

from cvm.plan.steps import Integers, attributes
from cvm.program import Instruction, IntArray, arithmetic, bounds
from cvm.program.bounds import Bounds
from cvm.program.short_rescale import (
    SHORT_BITS,
    fits_32_bits,
    short_factors,
)
from cvm.proof.validate import Proven, WellFormed, constants_of, infer_bounds

SMALL = (
    2**29
)  # a sum of products below this is still known from four times itself modulo 2^32


def stage_attributes(
    form: WellFormed, instruction: Instruction
) -> dict[str, Integers]:
    """Return an instruction's attributes, and of a rescale what its proven interval makes true.

    `narrow`: all results fit 32 bits before they saturate. `fits32`: products fit 32 bits, once a multiplier has
    lost its trailing zeros, with the half and the zero point (by way of 0..255) that are added to them.
    """
    own = attributes(instruction)
    if instruction.name == "rescale" and isinstance(form, Proven):
        if _is_narrow(form, instruction):
            own["narrow"] = (1,)
        if _fits32(form, instruction):
            own["fits32"] = (1,)
    return own


def linear_attributes(
    form: WellFormed, value: int, instruction: Instruction
) -> dict[str, Integers]:
    """An instruction's attributes, and `small` for a conv2d whose sums without the bias lie within 2^29."""
    own = attributes(instruction)
    if (
        instruction.name == "conv2d"
        and isinstance(form, Proven)
        and _is_small(form, value, instruction)
    ):
        own["small"] = (1,)
    return own


def _is_narrow(form: Proven, instruction: Instruction) -> bool:
    """By the interval of the whole operand, or else by those of its channels: a dead channel has a great bias and small scale."""
    x = instruction.operands[0]
    whole = bounds.full(form.types[x], *form.intervals[x])
    if _all_fit(form, instruction, whole):
        return True
    return _all_fit(form, instruction, _channel_bounds(form, x))


def _all_fit(form: Proven, instruction: Instruction, x: Bounds) -> bool:
    """Whether no result needs more than 32 bits: a rescale is monotone, so the ends of the intervals decide."""
    multiplier, shift = _factors(form, instruction)
    zero_point = instruction.attributes["input_zp"]
    assert isinstance(zero_point, int)
    low, high = (
        arithmetic.rescale(ends - zero_point, multiplier, shift)
        for ends in (x.lo, x.hi)
    )
    return Bounds(low, high).fits("i32")


def _fits32(form: Proven, instruction: Instruction) -> bool:
    """Of a rescale of i32 to i8. Long multipliers are left alone before any interval is looked for."""
    x = instruction.operands[0]
    if instruction.attributes["dtype"] != "i8" or form.types[x].dtype != "i32":
        return False
    multiplier, shift = short_factors(*_factors(form, instruction))
    if np.any(multiplier >= 2**SHORT_BITS):
        return False
    found = _channel_bounds(form, x)
    return bool(np.all(fits_32_bits(found.lo, found.hi, multiplier, shift)))


def _factors(
    form: Proven, instruction: Instruction
) -> tuple[IntArray, IntArray]:
    """Return the multipliers and shifts of a rescale, in int64."""
    first = form.program.first_constant
    multiplier, shift = (
        form.program.constants[value - first].astype(np.int64)
        for value in instruction.operands[1:]
    )
    return multiplier, shift


def _channel_bounds(form: Proven, value: int) -> Bounds:
    """What the rule of the instruction gives for each channel, from the intervals of its whole operands."""
    program = form.program
    if value < program.first_instruction:
        return bounds.full(form.types[value], *form.intervals[value])
    instruction = program.instructions[value - program.first_instruction]
    constants = constants_of(program, instruction)
    operands = [
        bounds.full(form.types[operand], *form.intervals[operand])
        if array is None
        else bounds.of_constant(array, form.types[operand])
        for operand, array in zip(instruction.operands, constants, strict=True)
    ]
    return infer_bounds(
        instruction,
        form.types,
        constants,
        tuple(operands),
        form.types[value],
    )


def _is_small(form: Proven, value: int, instruction: Instruction) -> bool:
    """The interval of the result holds the bias, which is at least its least and at most its greatest entry."""
    bias = form.program.constants[
        instruction.operands[2] - form.program.first_constant
    ]
    low, high = form.intervals[value]
    return low - int(bias.max()) >= -SMALL and high - int(bias.min()) < SMALL
