"""Instructions of a proven program as rules see them: types, constants, and intervals where these are given."""

from __future__ import annotations

from collections.abc import Mapping

from cvm.program.bounds import Bounds
from cvm.proof.validate import Proven
from cvm.reference.call import Call


def call_of(form: Proven, number: int, bounds: Mapping[int, Bounds]) -> Call:
    """The instruction that defines a value."""
    program, types = form.program, form.types
    instruction = program.instructions[number - program.first_instruction]
    constants = tuple(
        program.constants[value - program.first_constant]
        if program.first_constant <= value < program.first_instruction
        else None
        for value in instruction.operands
    )
    return Call(
        instruction.name,
        tuple(types[value] for value in instruction.operands),
        constants,
        instruction.attributes,
        tuple(bounds[value] for value in instruction.operands),
        types[number],
    )
