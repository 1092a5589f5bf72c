"""A table takes over the element-wise instruction that alone reads it: its entries become that function's values."""

from __future__ import annotations

from collections import defaultdict

import numpy as np

from cvm.program import DTYPES, Instruction, IntArray, Meaning
from cvm.proof.validate import WellFormed
from cvm.reference.registry import RULES
from mrt.fold.folded import Folded, with_metadata
from mrt.quantize.builder import Handle, ProgramBuilder

MOVEMENTS = frozenset(("slice", "reshape", "transpose", "reverse", "tile"))
FUNCTIONS = frozenset(("rescale", "clamp", "cast"))
ENTRIES = ("i8", "i16", "i32")  # dtypes of a table


def compose_tables(form: WellFormed) -> Folded:
    """table -> rescale, clamp or cast => table, also where the table's result is moved in between.

    Applies where nothing else reads the table. Safe: the entries are that instruction's
    own results.
    """
    return _Composition(form).written()


class _Composition:
    """A program, and which of its tables take over which instructions."""

    def __init__(self, form: WellFormed) -> None:
        self.form, self.program = form, form.program
        self.first = form.program.first_instruction
        self.readers: defaultdict[int, list[int]] = defaultdict(list)
        for number in range(self.first, len(form.types)):
            for value in self.instruction(number).operands:
                self.readers[value].append(number)
        self.outputs = {output.value for output in form.program.outputs}
        self.function: dict[int, int] = {}  # of a table
        self.moved: set[int] = set()  # between a table and its function
        self.gone: set[int] = set()
        for number in range(self.first, len(form.types)):
            if self.instruction(number).name == "table":
                self._compose(number)

    def instruction(self, number: int) -> Instruction:
        """What defines a value."""
        return self.program.instructions[number - self.first]

    def constant(self, value: int) -> IntArray | None:
        """A constant, if the value is one."""
        place = value - self.program.first_constant
        if 0 <= place < len(self.program.constants):
            return self.program.constants[place]
        return None

    # -- which ---------------------------------------------------------------------

    def _compose(self, number: int) -> None:
        moved, functions = self._behind(number)
        if len({self._signature(function) for function in functions}) != 1:
            return
        if self.form.types[functions[0]].dtype in ENTRIES:
            self.function[number] = functions[0]
            self.moved.update(moved)
            self.gone.update(functions)

    def _behind(self, number: int) -> tuple[list[int], list[int]]:
        """Return the values to which movements take a value, and the functions that read these; none if anything else does."""
        moved, functions = [number], []
        for value in moved:
            for reader in self.readers[value]:
                if self.instruction(reader).name in MOVEMENTS:
                    moved.append(reader)
                else:
                    functions.append(reader)
        stays = self.outputs.intersection(moved)
        if stays or not all(map(self._is_function, functions)):
            return [], []
        return moved, functions

    def _is_function(self, number: int) -> bool:
        """Return whether an instruction is one function of each integer, with the same constants everywhere."""
        instruction = self.instruction(number)
        constants = map(self.constant, instruction.operands[1:])
        return instruction.name in FUNCTIONS and all(
            array is not None and array.size == 1 for array in constants
        )

    def _signature(self, number: int) -> tuple[object, ...]:
        instruction = self.instruction(number)
        attributes = tuple(instruction.attributes.items())
        return instruction.name, attributes, instruction.operands[1:]

    # -- the program -----------------------------------------------------------------

    def written(self) -> Folded:
        """The program with the new tables."""
        builder = ProgramBuilder()
        handles: dict[int, Handle] = {}
        sources: dict[Handle, int] = {}
        for number, input_ in enumerate(self.program.inputs):
            handles[number] = builder.input(input_, Meaning(1.0, 0))
        for number, array in enumerate(
            self.program.constants, self.program.first_constant
        ):
            handles[number] = builder.constant(array)
        for number in range(self.first, len(self.form.types)):
            instruction = self.instruction(number)
            operands = [handles[value] for value in instruction.operands]
            if number in self.function:
                operands[1] = builder.constant(self._entries(number))
            if number in self.gone:
                handles[number] = operands[0]
            else:
                handle = builder.emit(
                    instruction.name, *operands, **instruction.attributes
                )
                handles[number] = handle
                sources.setdefault(handle, number)
        for output in self.program.outputs:
            builder.output(output.name, handles[output.value], Meaning(1.0, 0))
        self._annotate(builder, handles)
        return with_metadata(builder, sources, self.program)

    def _entries(self, number: int) -> IntArray:
        """The entries of a table after its function; those that no operand picks may be any."""
        function = self.instruction(self.function[number])
        values = self.constant(self.instruction(number).operands[1])
        constants = map(self.constant, function.operands[1:])
        entries = RULES[function.name].run(
            values, *constants, **function.attributes
        )
        dtype = DTYPES[self.form.types[self.function[number]].dtype]
        interval = np.iinfo(dtype)
        return np.clip(entries, interval.min, interval.max).astype(dtype)

    def _annotate(
        self, builder: ProgramBuilder, handles: dict[int, Handle]
    ) -> None:
        """Keep the meanings of values whose integers are as they were."""
        old = self.program.metadata
        for number, meaning in (old.values if old else {}).items():
            if number not in self.moved and number >= self.first:
                builder.annotate(handles[number], meaning)
