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
    """The lane that holds a number of the program's text."""
    return -2 - (number + 2**31)


@dataclass
class Lanes:
    """The lanes of every value of at most MOST elements, in its shape, and the integers of constant roots."""

    form: WellFormed
    of: dict[int, IntArray] = field(default_factory=dict)
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
        """Whether a value is computed, or given."""
        found = self.of.get(number)
        return found is None or int(found.flat[0]) == number * PLACES

    def constant(self, value: int) -> IntArray | None:
        """The integers of a value that depends on no input, in its shape and dtype."""
        if value in self.numbers:
            return self.numbers[value]
        if value not in self._constants:
            lanes = self.of.get(value)
            known = None if lanes is None else self.known(lanes)
            if known is not None:
                known = known.astype(DTYPES[self.form.types[value].dtype])
            self._constants[value] = known
        return self._constants[value]

    def known(self, lanes: IntArray) -> IntArray | None:
        """The integers of lanes that are all constant, else None."""
        found = np.zeros(lanes.shape, np.int64)
        for root in roots_of(lanes):
            if root not in self.numbers:
                return None
            here = lanes // PLACES == root
            places = lanes[here] % PLACES
            found[here] = self.numbers[root].reshape(-1)[places]
        return np.where(lanes < ANY, -lanes - 2 - 2**31, found)

    def instruction(self, number: int) -> Instruction | None:
        """What defines a value, unless it is given."""
        program = self.form.program
        place = number - program.first_instruction
        return program.instructions[place] if place >= 0 else None

    def operands(self, number: int) -> tuple[int, ...]:
        """What an instruction reads."""
        item = self.instruction(number)
        return () if item is None else item.operands

    def _add(self, number: int) -> None:
        item = self.instruction(number)
        moved = None if item is None else self._moved(item)
        if moved is None:
            type_ = self.form.types[number]
            own = number * PLACES + np.arange(type_.elements)
            self.of[number] = own.reshape(type_.shape)
            if item is not None:
                self._evaluate(number, item)
        else:
            self.of[number] = moved

    def _moved(self, item: Instruction) -> IntArray | None:
        """The lanes of a movement's result; None for what computes."""
        operands = [self.of.get(value) for value in item.operands]
        given = [lanes for lanes in operands if lanes is not None]
        if len(given) < len(operands):
            return None
        attributes = dict(item.attributes)
        if item.name == "gather":
            indices = self.known(given[1])
            if indices is None:
                return None
            given = [given[0], indices]
        elif item.name not in MOVEMENTS:
            return None
        elif item.name == "pad":
            attributes["value"] = literal(int(attributes["value"]))  # type: ignore[arg-type]
        return RULES[item.name].run(*given, **attributes)

    def _evaluate(self, number: int, item: Instruction) -> None:
        """Compute what depends on constants alone."""
        known = [self.constant(value) for value in item.operands]
        operands = [array for array in known if array is not None]
        if len(operands) == len(known):
            found = RULES[item.name].run(*operands, **item.attributes)
            dtype = DTYPES[self.form.types[number].dtype]
            self.numbers[number] = np.asarray(found).astype(dtype)


def roots_of(lanes: IntArray) -> list[int]:
    """The roots that lanes come from."""
    return [int(root) for root in np.unique(lanes[lanes >= 0] // PLACES)]
