"""A function of one value as it runs at chosen places: each member by the reference machine, constants by class.

Positions of the result that share all constants and the proven interval of the argument form a class;
where constants differ along the last axis alone, a class is a set of channels.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cvm.instructions import INSTRUCTIONS
from cvm.lower.lowering import Lowering, ValueFunction
from cvm.lower.stored import Stored, plain
from cvm.program import DTYPES, Instruction, IntArray
from cvm.reference.registry import RULES

Key = tuple[int, int]
"""A member, and the place of one of its operands."""


@dataclass(frozen=True, eq=False)
class RunnableFunction:
    """One function, ready to run. `classes` gives the class of each position, in the shape of the value.

    `low` and `high` hold the interval of the argument for each class; `entries` a constant
    operand's entry for each class; `tables` the constants that are read whole. Where the argument is stored in
    units, arguments and intervals are the integers stored, and `factor` and `offset` what they stand for.
    """

    lowering: Lowering
    function: ValueFunction
    classes: IntArray
    low: IntArray
    high: IntArray
    factor: IntArray
    offset: IntArray
    entries: dict[Key, IntArray]
    tables: dict[Key, IntArray]

    def at(self, which: IntArray, x: IntArray) -> dict[int, IntArray]:
        """Every member's values, in int64, for arguments `x` of the classes `which`; all are vectors."""
        types = self.lowering.form.types
        argument = self.function.argument
        meant = x * self.factor[which] + self.offset[which]
        values = {argument: meant.astype(DTYPES[types[argument].dtype])}
        for number in self.function.members:
            instruction = self.instruction(number)
            operands = [
                values[value]
                if value in values
                else self.constant(number, place, which)
                for place, value in enumerate(instruction.operands)
            ]
            exact = RULES[instruction.name].run(
                *operands, **instruction.attributes
            )
            values[number] = exact.astype(DTYPES[types[number].dtype])
        return {
            number: array.astype(np.int64) for number, array in values.items()
        }

    def constant(self, number: int, place: int, which: IntArray) -> IntArray:
        """A constant operand of a member: its entries for these classes, or all of a table."""
        if (number, place) in self.tables:
            return self.tables[number, place]
        return self.entries[number, place][which]

    def instruction(self, number: int) -> Instruction:
        """The instruction that defines a value."""
        program = self.lowering.form.program
        return program.instructions[number - program.first_instruction]


def runnable(
    lowering: Lowering, function: ValueFunction, stored: Stored | None = None
) -> RunnableFunction:
    """The classes of a function, and the constants of each; of an argument in units, if it is `stored` so."""
    type_ = lowering.form.types[function.value]
    shape = type_.shape or (1,)
    entries, tables = _constants(lowering, function)
    if stored is None:
        bounds = lowering.bounds[function.argument].spread(type_)
        if len(bounds.lo) != shape[-1]:
            bounds = bounds.hull()
        stored = plain(bounds)
    if all(array.size == array.shape[-1] for array in entries.values()):
        shape = shape[-1:]
        entries = {key: array.reshape(-1) for key, array in entries.items()}
    rows = [
        np.broadcast_to(array, shape).reshape(-1).astype(np.int64)
        for array in (*stored.arrays, *entries.values())
    ]
    unique, inverse = np.unique(np.stack(rows), axis=1, return_inverse=True)
    low, high, factor, offset, *columns = unique
    classes = np.broadcast_to(inverse.reshape(shape), type_.shape or (1,))
    by_class = {
        key: column.astype(array.dtype)
        for (key, array), column in zip(entries.items(), columns, strict=True)
    }
    classes = classes.reshape(type_.shape)
    return RunnableFunction(
        lowering,
        function,
        classes,
        low,
        high,
        factor,
        offset,
        by_class,
        tables,
    )


Arrays = dict[Key, IntArray]


def _constants(
    lowering: Lowering, function: ValueFunction
) -> tuple[Arrays, Arrays]:
    """The constants of which each position takes one entry, and those that are read whole."""
    program = lowering.form.program
    entries: Arrays = {}
    tables: Arrays = {}
    for number in function.members:
        instruction = program.instructions[number - program.first_instruction]
        names = INSTRUCTIONS[instruction.name].inputs
        for place, value in enumerate(instruction.operands):
            if program.first_constant <= value < program.first_instruction:
                array = program.constants[value - program.first_constant]
                arrays = tables if names[place] == "values" else entries
                arrays[number, place] = array.reshape(array.shape or (1,))
    return entries, tables
