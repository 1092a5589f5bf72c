"""Weights that are secret: which constants these are, and what is proven of a program whose weights are not known."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from cvm.errors import BadInput, Unproven
from cvm.program import DTYPE_RANGES, Program, TensorType
from cvm.program.bounds import Bounds, full, of_constant
from cvm.proof.validate import (
    Proven,
    channel_intervals,
    constants_of,
    infer_bounds,
)

# Which operands of an instruction are weights; multipliers, shifts and tables are not.
WEIGHTS = {"conv2d": (1, 2), "conv2d_transpose": (1, 2), "dense": (1, 2)}


def weights_of(program: Program) -> tuple[int, ...]:
    """The value numbers of the constants that are weights or biases and nothing else."""
    constants = range(program.first_constant, program.first_instruction)
    weights: set[int] = set()
    others: set[int] = set()
    for instruction in program.instructions:
        places = WEIGHTS.get(instruction.name, ())
        for place, value in enumerate(instruction.operands):
            (weights if place in places else others).add(value)
    return tuple(value for value in constants if value in weights - others)


def hidden_weights(program: Program) -> tuple[int, ...]:
    """All weights, if all can be hidden; else BadInput."""
    weights = weights_of(program)
    if not weights:
        raise BadInput(
            "the program has no convolution and no dense layer, so no weights to hide"
        )
    for number, instruction in enumerate(
        program.instructions, program.first_instruction
    ):
        for place in WEIGHTS.get(instruction.name, ()):
            value = instruction.operands[place]
            if value not in weights:
                raise BadInput(
                    f"constant %{value} is a weight of %{number} = {instruction.name} and has another use, too: it cannot be hidden"
                )
    return weights


def without_weights(program: Program) -> Program:
    """The same program with zeros as weights, and no metadata: what may be shown of one whose weights are secret."""
    hidden = set(hidden_weights(program))
    constants = tuple(
        np.zeros_like(array) if number in hidden else array
        for number, array in enumerate(
            program.constants, program.first_constant
        )
    )
    return replace(program, constants=constants, metadata=None)


def bounds_of(form: Proven, hidden: tuple[int, ...]) -> Mapping[int, Bounds]:
    """The interval of each channel of each value; if weights are hidden, one that holds for any weights.

    A function made from these intervals therefore shows nothing of hidden weights.
    """
    if not hidden:
        return dict(channel_intervals(form))
    program, types = form.program, form.types
    bounds = {
        number: full(input_.type, input_.lo, input_.hi)
        for number, input_ in enumerate(program.inputs)
    }
    for number, array in enumerate(program.constants, program.first_constant):
        if number in hidden:
            bounds[number] = _any(types[number])
        else:
            bounds[number] = of_constant(array, types[number])
    for number in range(program.first_instruction, len(types)):
        bounds[number] = _bounds_by_rule(form, number, bounds, hidden)
    return bounds


def _bounds_by_rule(
    form: Proven,
    number: int,
    bounds: Mapping[int, Bounds],
    hidden: tuple[int, ...],
) -> Bounds:
    """The rule's interval; all integers of the dtype where the rule reads a weight, or proves only with weights."""
    program, types = form.program, form.types
    instruction = program.instructions[number - program.first_instruction]
    if set(instruction.operands) & set(hidden):
        return _any(types[number])
    constants = constants_of(program, instruction)
    operands = tuple(bounds[value] for value in instruction.operands)
    try:
        return infer_bounds(
            instruction, types, constants, operands, types[number]
        )
    except Unproven:
        return _any(types[number])


def _any(type_: TensorType) -> Bounds:
    return full(type_, *DTYPE_RANGES[type_.dtype])
