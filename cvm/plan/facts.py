"""Facts that the engine takes from the proof: where fewer bits than 32, or than 64, are enough."""

from __future__ import annotations

import numpy as np

from cvm.plan.steps import Integers, attributes
from cvm.program import DTYPE_RANGES, Instruction, arithmetic
from cvm.proof.validate import Proven, WellFormed

SMALL = (
    2**29
)  # a sum of products below this is still known from four times itself modulo 2^32


def stage_attributes(
    form: WellFormed, instruction: Instruction
) -> dict[str, Integers]:
    """An instruction's attributes, and `narrow` for a rescale whose results all fit 32 bits before saturation."""
    own = attributes(instruction)
    if (
        instruction.name == "rescale"
        and isinstance(form, Proven)
        and _is_narrow(form, instruction)
    ):
        own["narrow"] = (1,)
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
    """Monotone in x, so the ends of its interval decide, whatever the channel."""
    x, multiplier, shift = instruction.operands
    first, zero_point = (
        form.program.first_constant,
        instruction.attributes["input_zp"],
    )
    assert isinstance(zero_point, int)
    factors = [
        form.program.constants[value - first].astype(np.int64)
        for value in (multiplier, shift)
    ]
    low, high = DTYPE_RANGES["i32"]
    results = [
        arithmetic.rescale(np.array(end - zero_point, np.int64), *factors)
        for end in form.intervals[x]
    ]
    return all(
        low <= int(found.min()) and int(found.max()) <= high
        for found in results
    )


def _is_small(form: Proven, value: int, instruction: Instruction) -> bool:
    """The interval of the result holds the bias, which is at least its least and at most its greatest entry."""
    bias = form.program.constants[
        instruction.operands[2] - form.program.first_constant
    ]
    low, high = form.intervals[value]
    return low - int(bias.max()) >= -SMALL and high - int(bias.min()) < SMALL
