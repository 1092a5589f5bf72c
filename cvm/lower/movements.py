"""Movements for engines on secrets: the reference machine moves the numbers of places."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from cvm.instructions import INSTRUCTIONS
from cvm.lower.secret_steps import SecretValue
from cvm.program import Instruction, IntArray
from cvm.reference.registry import RULES


def is_movement(instruction: Instruction) -> bool:
    """Whether every element of the result is copied from an operand or the instruction itself, from places known before."""
    if instruction.name == "resize":
        return instruction.attributes["mode"] == "nearest"
    return instruction.name == "gather" or (
        INSTRUCTIONS[instruction.name].family == "movement"
    )


def places_of(
    instruction: Instruction, operands: Sequence[SecretValue | IntArray]
) -> tuple[IntArray, IntArray]:
    """For each element of the result its place among those of the secret operands, one after another.

    Where there is `NOTHING`, the second array has the public integer.
    """
    numbered, filled, first = [], [], 1  # 0 is no place
    for operand in operands:
        if isinstance(operand, SecretValue):
            count = operand.elements
            places = np.arange(first, first + count).reshape(operand.shape)
            first += count
            numbered.append(places)
            filled.append(np.zeros_like(places))
        else:
            numbered.append(np.zeros(operand.shape, np.int64))
            filled.append(operand.astype(np.int64))
    if instruction.name == "gather":
        numbered[1] = filled[1]  # places, which are not moved
    attributes = dict(instruction.attributes)
    run = RULES[instruction.name].run
    fillers = run(*filled, **attributes)
    if instruction.name == "pad":
        attributes["value"] = 0
    moved = np.asarray(run(*numbered, **attributes), np.int64)
    return moved - 1, np.asarray(fillers, np.int64)
