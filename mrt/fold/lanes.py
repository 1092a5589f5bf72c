"""Where each element of a value comes from, followed through movements to what computes it.

A *root* is a value that no movement made: an input, a constant, or the result of a
computation. A *lane* names one element of a root by one integer, so that a movement of
lanes is the movement of the values: the reference machine's own functions find both.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from cvm.program import DTYPES, Instruction, IntArray
from cvm.proof.validate import WellFormed
from cvm.reference.registry import RULES

MOST = 65536  # elements of a value whose lanes are followed: as many as have intervals
PLACES = 2**20
ANY = -1  # a lane whose integer does not matter
MOVEMENTS = frozenset(
    ("reshape", "transpose", "concat", "slice", "pad", "tile", "reverse")
)


def literal(number: int) -> int:
    """Return the lane that stands for a number written in an attribute."""
    return -2 - (number + 2**31)


@dataclass
class Lanes:
    """The lanes of a program's values, and the integers of constant roots.

    `by_value` has the lanes of every value of at most MOST elements, in its shape, and
    `numbers` the integers of every constant root, in theirs.
    """

    form: WellFormed
    by_value: dict[int, IntArray] = field(default_factory=dict)
    numbers: dict[int, IntArray] = field(default_factory=dict)
    _constants: dict[int, IntArray | None] = field(default_factory=dict)

    def __post_init__(self) -> None:
        program = self.form.program
        for place, array in enumerate(program.constants):
            self.numbers[program.first_constant + place] = array
        for number, type_ in enumerate(self.form.types):
            if type_.elements <= MOST:
                self._add(number)

    def is_root(self, number: int) -> bool:
        """Return whether a value is a root: no movement made it."""
        lanes = self.by_value.get(number)
        return lanes is None or int(lanes.flat[0]) == number * PLACES

    def constant(self, value: int) -> IntArray | None:
        """The integers of a value that depends on no input, in its shape and dtype."""
        if value in self.numbers:
            return self.numbers[value]
        if value not in self._constants:
            lanes = self.by_value.get(value)
            integers = None if lanes is None else self.integers(lanes)
            if integers is not None:
                integers = integers.astype(DTYPES[self.form.types[value].dtype])
            self._constants[value] = integers
        return self._constants[value]

    def integers(self, lanes: IntArray) -> IntArray | None:
        """The integers of lanes that are all constant, else None."""
        integers = np.zeros(lanes.shape, np.int64)
        for root in roots_of(lanes):
            if root not in self.numbers:
                return None
            of_root = lanes // PLACES == root
            places = lanes[of_root] % PLACES
            integers[of_root] = self.numbers[root].reshape(-1)[places]
        return np.where(lanes < ANY, -lanes - 2 - 2**31, integers)

    def instruction(self, number: int) -> Instruction | None:
        """Return the instruction that computes a value; None for an input or a constant."""
        program = self.form.program
        place = number - program.first_instruction
        return program.instructions[place] if place >= 0 else None

    def operands(self, number: int) -> tuple[int, ...]:
        """Return the operands of the instruction that computes a value, if there is one."""
        instruction = self.instruction(number)
        return () if instruction is None else instruction.operands

    def _add(self, number: int) -> None:
        instruction = self.instruction(number)
        moved = None if instruction is None else self._moved(instruction)
        if moved is None:
            type_ = self.form.types[number]
            lanes = number * PLACES + np.arange(type_.elements)
            self.by_value[number] = lanes.reshape(type_.shape)
            if instruction is not None:
                self._evaluate(number, instruction)
        else:
            self.by_value[number] = moved

    def _moved(self, instruction: Instruction) -> IntArray | None:
        """The lanes of a movement's result; None for what computes."""
        operands = [self.by_value.get(value) for value in instruction.operands]
        arrays = [lanes for lanes in operands if lanes is not None]
        if len(arrays) < len(operands):
            return None
        attributes = dict(instruction.attributes)
        if instruction.name == "gather":
            indices = self.integers(arrays[1])
            if indices is None:
                return None
            arrays = [arrays[0], indices]
        elif instruction.name not in MOVEMENTS:
            return None
        elif instruction.name == "pad":
            attributes["value"] = literal(int(attributes["value"]))  # type: ignore[arg-type]
        return RULES[instruction.name].run(*arrays, **attributes)

    def _evaluate(self, number: int, instruction: Instruction) -> None:
        """Compute what depends on constants alone."""
        constants = [self.constant(value) for value in instruction.operands]
        operands = [array for array in constants if array is not None]
        if len(operands) == len(constants):
            result = RULES[instruction.name].run(
                *operands, **instruction.attributes
            )
            dtype = DTYPES[self.form.types[number].dtype]
            self.numbers[number] = np.asarray(result).astype(dtype)


def roots_of(lanes: IntArray) -> list[int]:
    """The roots that lanes come from."""
    return [int(root) for root in np.unique(lanes[lanes >= 0] // PLACES)]
