"""The program as steps, each one function of C.

A step is one instruction, or several neighbours that go element by element, or sums of products and such neighbours:
these then finish one row of sums after the other, and the sums of 32 bits need no more memory than a row.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import prod

import numpy as np

from cvm.export.c.instruction import CInstruction, Operand, smallest_dtype
from cvm.export.c.table import TABLE
from cvm.plan.arena import Lifetime
from cvm.program import DTYPES, Instruction, IntArray
from cvm.program.short_rescale import factors_of
from cvm.proof.validate import Proven

MOST_FUSED = 32  # instructions: C99 promises no more than 127 parameters


@dataclass(frozen=True)
class CFunction:
    """Instructions by the numbers of the values that they define; what the step reads, and what it must store."""

    values: tuple[int, ...]
    reads: tuple[int, ...]
    writes: tuple[int, ...]


@dataclass(frozen=True)
class CProgram:
    """The steps of a program. `roots` has, for each value that a reshape leaves in place, the value that holds its elements."""

    form: Proven
    roots: Mapping[int, int]
    steps: tuple[CFunction, ...]

    def root(self, value: int) -> int:
        """The value that holds the elements of this one."""
        return self.roots.get(value, value)

    def constant(self, value: int) -> IntArray | None:
        """The integers of a value that is a constant, or a view of one."""
        program = self.form.program
        index = self.root(value) - program.first_constant
        if 0 <= index < len(program.constants):
            return program.constants[index].reshape(
                self.form.types[value].shape
            )
        return None

    def node(self, number: int) -> CInstruction:
        """The instruction that defines a value, in the form that the writers take."""
        instruction = _instruction(self.form, number)
        row = TABLE[instruction.name]
        factors = self._short_factors(number)
        operands = []
        for index, value in enumerate(instruction.operands):
            array = (
                factors[index - 1]
                if factors and index
                else self.constant(value)
            )
            type_ = self.form.types[value]
            stored = type_.dtype
            if array is not None and row.any_dtype:
                stored = smallest_dtype(array)
            operands.append(Operand(type_, stored, array))
        return CInstruction(
            instruction.name,
            tuple(operands),
            instruction.attributes,
            self.form.types[number],
            bool(factors),
        )

    def _short_factors(self, number: int) -> list[IntArray]:
        """The short multipliers and shifts of a rescale whose products fit 32 bits; an empty list for others."""
        facts = self.form.rescales.get(number)
        if facts is None or not facts.fits32:
            return []
        instruction = _instruction(self.form, number)
        factors = factors_of(self.form.program, instruction)
        return [factor.astype(np.int32) for factor in factors]

    def operands(self, number: int) -> tuple[int, ...]:
        """The values that the instruction which defines this one reads."""
        return _instruction(self.form, number).operands

    def finishes_rows(self, step: CFunction) -> bool:
        """Whether the first instruction's sums are finished by those after it."""
        first = _instruction(self.form, step.values[0])
        return len(step.values) > 1 and not TABLE[first.name].expression

    def width(self, value: int) -> int:
        """The bytes of an element."""
        return DTYPES[self.form.types[value].dtype].itemsize

    def lifetimes(self) -> dict[int, Lifetime]:
        """For each value that a step stores its size, that step, and the last one that reads it."""
        lifetimes: dict[int, Lifetime] = {}
        for index, step in enumerate(self.steps):
            for value in step.writes:
                size = self.form.types[value].elements * self.width(value)
                lifetimes[value] = Lifetime(size, index, index)
            for root in map(self.root, step.reads):
                if root in lifetimes:
                    born = lifetimes[root]
                    lifetimes[root] = Lifetime(born.size, born.first, index)
        return lifetimes


def plan(form: Proven) -> CProgram:
    """The steps in the program's order. Neighbours join if all go element by element over one shape."""
    roots = _roots(form)
    groups = _with_rows(form, roots, list(_groups(form, roots)))
    reads = [_reads(form, group) for group in groups]
    stored = {output.value for output in form.program.outputs}
    for values in reads:
        stored.update(roots.get(value, value) for value in values)
    steps = [
        CFunction(
            group, read, tuple(value for value in group if value in stored)
        )
        for group, read in zip(groups, reads, strict=True)
    ]
    return CProgram(form, roots, tuple(steps))


def _instruction(form: Proven, number: int) -> Instruction:
    program = form.program
    return program.instructions[number - program.first_instruction]


def _roots(form: Proven) -> dict[int, int]:
    program = form.program
    roots: dict[int, int] = {}
    outputs = {output.value for output in program.outputs}
    for number, instruction in enumerate(
        program.instructions, program.first_instruction
    ):
        if instruction.name == "reshape" and number not in outputs:
            source = instruction.operands[0]
            roots[number] = roots.get(source, source)
    return roots


def _groups(
    form: Proven, roots: Mapping[int, int]
) -> Iterator[tuple[int, ...]]:
    first = form.program.first_instruction
    group: list[int] = []
    for number in range(first, first + len(form.program.instructions)):
        if number in roots:
            continue
        if group and not _joins(form, roots, number, group):
            yield tuple(group)
            group = []
        group.append(number)
    yield tuple(group)


def _joins(
    form: Proven, roots: Mapping[int, int], number: int, group: list[int]
) -> bool:
    """Whether an instruction may share the loop of those before it: it must not read one of them by another shape."""
    instruction, last = _instruction(form, number), group[-1]
    if not (
        TABLE[instruction.name].expression
        and TABLE[_instruction(form, last).name].expression
    ):
        return False
    views = {roots[value] for value in instruction.operands if value in roots}
    return (
        len(group) < MOST_FUSED
        and form.types[number].shape == form.types[last].shape
        and views.isdisjoint(group)
    )


def _with_rows(
    form: Proven, roots: Mapping[int, int], groups: list[tuple[int, ...]]
) -> list[tuple[int, ...]]:
    """Groups that go element by element joined to the sums of products before them, where no other group reads the sums."""
    readers = _readers(form, roots, groups)
    outputs = {output.value for output in form.program.outputs}
    joined: list[tuple[int, ...]] = []
    for index, group in enumerate(groups):
        last = joined[-1] if joined else ()
        if (
            len(last) == 1
            and TABLE[_instruction(form, last[0]).name].rows
            and last[0] not in outputs
            and readers[last[0]] == {index}
            and _goes_by_rows(form, roots, last[0], group)
        ):
            joined[-1] = last + group
        else:
            joined.append(group)
    return joined


def _readers(
    form: Proven, roots: Mapping[int, int], groups: list[tuple[int, ...]]
) -> dict[int, set[int]]:
    """For each value the indices of the groups that read its elements."""
    readers: dict[int, set[int]] = {}
    for index, group in enumerate(groups):
        for value in _reads(form, group):
            readers.setdefault(roots.get(value, value), set()).add(index)
    return readers


def _goes_by_rows(
    form: Proven, roots: Mapping[int, int], sums: int, group: tuple[int, ...]
) -> bool:
    """Whether each operand steps evenly from row to row, a row being what shares all indices but the last."""
    shape = form.types[sums].shape
    if (
        not TABLE[_instruction(form, group[0]).name].expression
        or form.types[group[0]].shape != shape
    ):
        return False
    for value in _reads(form, group):
        if roots.get(value) == sums:
            return False
        operand_shape = form.types[value].shape
        rows = prod(operand_shape[:-1])
        if len(operand_shape) == len(shape) and rows not in (
            1,
            prod(shape[:-1]),
        ):
            return False
    return True


def _reads(form: Proven, group: tuple[int, ...]) -> tuple[int, ...]:
    """The values from outside, each once, in order of their first use."""
    operands = (
        value
        for number in group
        for value in _instruction(form, number).operands
    )
    return tuple(
        dict.fromkeys(value for value in operands if value not in group)
    )
