"""Finds the functions of a program: element-wise instructions that depend on one earlier value."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from cvm.instructions import INSTRUCTIONS
from cvm.program import DTYPES, IntArray, Program
from cvm.program.bounds import Bounds
from cvm.proof.validate import Proven, channel_intervals
from cvm.reference.registry import RULES

ELEMENT_WISE = frozenset(
    name for name, spec in INSTRUCTIONS.items() if spec.stage
)


@dataclass(frozen=True)
class ValueFunction:
    """`value` as a function of `argument`, element by element; `members` are the values between them, in order.

    The last member is `value`. Other operands of the members are constants.
    """

    value: int
    argument: int
    members: tuple[int, ...]


@dataclass(frozen=True)
class Lowering:
    """A proven program in parts: `functions` by value number, and `kept`, the values of all other instructions.

    `bounds` holds the interval of each channel of a value, inputs and constants included; `constant_values` the
    constants, and what follows from these alone.
    """

    form: Proven
    functions: Mapping[int, ValueFunction]
    kept: tuple[int, ...]
    bounds: Mapping[int, Bounds]
    constant_values: Mapping[int, IntArray]

    @property
    def order(self) -> list[int]:
        """Every value to compute, each after those that it depends on."""
        return sorted([*self.functions, *self.kept])

    @property
    def secret_order(self) -> tuple[int, ...]:
        """The same without what is constant."""
        return tuple(
            number
            for number in self.order
            if number not in self.constant_values
        )


def lower(form: Proven) -> Lowering:
    """Divide a program into functions of one value and other instructions."""
    program = form.program
    arguments = _arguments(form)
    kept = tuple(
        number for number in _numbers(program) if arguments[number] == number
    )
    functions: dict[int, ValueFunction] = {}
    for number in sorted(_read_by_others(program, arguments)):
        if arguments[number] != number:
            members = _members(program, arguments, number)
            function = ValueFunction(number, arguments[number], members)
            functions[number] = _shortened(program, function, functions)
    bounds = dict(channel_intervals(form))
    return Lowering(form, functions, kept, bounds, _constant_values(form))


def _constant_values(form: Proven) -> dict[int, IntArray]:
    """The constants, and all values that no input changes."""
    program = form.program
    arrays = dict(enumerate(program.constants, program.first_constant))
    for number in _numbers(program):
        instruction = program.instructions[number - program.first_instruction]
        if arrays.keys() >= set(instruction.operands):
            operands = [arrays[value] for value in instruction.operands]
            exact = RULES[instruction.name].run(
                *operands, **instruction.attributes
            )
            dtype = DTYPES[form.types[number].dtype]
            arrays[number] = np.asarray(exact).astype(dtype)
    return arrays


def _arguments(form: Proven) -> dict[int, int]:
    """For each value that is computed, the one that it is a function of: itself if there is no such other."""
    program, types = form.program, form.types
    arguments = {number: number for number in range(len(program.inputs))}
    for number in _numbers(program):
        instruction = program.instructions[number - program.first_instruction]
        computed = [x for x in instruction.operands if x in arguments]
        roots = {arguments[x] for x in computed}
        shapes = {types[x].shape for x in computed}
        alike = shapes == {types[number].shape}
        if instruction.name in ELEMENT_WISE and len(roots) == 1 and alike:
            arguments[number] = roots.pop()
        else:
            arguments[number] = number
    return arguments


def _read_by_others(program: Program, arguments: Mapping[int, int]) -> set[int]:
    """The outputs, and the values that an instruction with another argument reads."""
    read = {reader.value for reader in program.outputs}
    for number in _numbers(program):
        reader = program.instructions[number - program.first_instruction]
        argument = arguments[number]
        for operand in reader.operands:
            if operand in arguments and arguments[operand] != argument:
                read.add(operand)
    return {number for number in read if number in arguments}


def _members(
    program: Program, arguments: Mapping[int, int], value: int
) -> tuple[int, ...]:
    """The values that `value` is computed from, as far as its argument, which is not among them."""
    argument, members, waiting = arguments[value], set[int](), [value]
    while waiting:
        number = waiting.pop()
        if number == argument or number not in arguments or number in members:
            continue
        members.add(number)
        instruction = program.instructions[number - program.first_instruction]
        waiting.extend(instruction.operands)
    return tuple(sorted(members))


def _shortened(
    program: Program,
    function: ValueFunction,
    earlier: Mapping[int, ValueFunction],
) -> ValueFunction:
    """The function of the last earlier function that it follows from, which has a narrower interval as a rule."""
    for number in reversed(function.members[:-1]):
        if number not in earlier:
            continue
        later = [x for x in function.members if x > number]
        read = {
            operand
            for member in later
            for operand in program.instructions[
                member - program.first_instruction
            ].operands
        }
        before = {function.argument, *function.members} - {number, *later}
        if not read & before:
            return ValueFunction(function.value, number, tuple(later))
    return function


def _numbers(program: Program) -> range:
    """The values that instructions define."""
    first = program.first_instruction
    return range(first, first + len(program.instructions))
