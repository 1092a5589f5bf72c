"""Facts that the engine takes from the proof: where fewer bits than 32, or than 64, are enough."""

from __future__ import annotations

from dataclasses import asdict

from cvm.plan.steps import Integers, attributes
from cvm.program import Instruction
from cvm.proof.validate import Proven, WellFormed

LEAST_BEYOND = 2**25
"""The least number that 26 bits do not hold: a sum below it is known from 576 times itself modulo 2^32."""


def stage_attributes(
    form: WellFormed, value: int, instruction: Instruction
) -> dict[str, Integers]:
    """Return the attributes of the instruction that gives `value`, and the names of the facts that hold of a rescale."""
    own_attributes = attributes(instruction)
    if instruction.name == "rescale" and isinstance(form, Proven):
        facts = form.rescales[value]
        own_attributes |= {
            name: (1,) for name, holds in asdict(facts).items() if holds
        }
    return own_attributes


def linear_attributes(
    form: WellFormed, value: int, instruction: Instruction
) -> dict[str, Integers]:
    """An instruction's attributes, and `fits26` for a conv2d whose sums without the bias fit 26 bits."""
    own_attributes = attributes(instruction)
    if (
        instruction.name == "conv2d"
        and isinstance(form, Proven)
        and _fits_26_bits(form, value, instruction)
    ):
        own_attributes["fits26"] = (1,)
    return own_attributes


def _fits_26_bits(form: Proven, value: int, instruction: Instruction) -> bool:
    """The interval of the result holds the bias, which is at least its least and at most its greatest entry."""
    bias = form.program.constants[
        instruction.operands[2] - form.program.first_constant
    ]
    low, high = form.intervals[value]
    return (
        low - int(bias.max()) >= -LEAST_BEYOND
        and high - int(bias.min()) < LEAST_BEYOND
    )
