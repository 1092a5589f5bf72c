"""The parts of a plan, as frozen data. `cvm/engine/plan.h` declares the same in C++."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum

from cvm.instructions import INSTRUCTIONS
from cvm.program import DTYPE_CODES, DTYPES, Attribute, Instruction, TensorType
from cvm.proof.validate import WellFormed

Integers = tuple[int, ...]

LOAD = "load"  # the stage that reads one of the step's operands
CHAIN = "chain"  # the step that is nothing but stages
OPCODES = {LOAD: 200, CHAIN: 201} | {
    name: spec.opcode for name, spec in INSTRUCTIONS.items()
}
STAGES = frozenset(name for name, spec in INSTRUCTIONS.items() if spec.stage)
LINEAR = frozenset(
    name for name, spec in INSTRUCTIONS.items() if spec.family == "linear"
)  # steps with an accumulator
POOLING = frozenset(
    name for name, spec in INSTRUCTIONS.items() if spec.family == "pooling"
)
MOVEMENT = frozenset(
    name for name, spec in INSTRUCTIONS.items() if spec.family == "movement"
)


class Room(IntEnum):
    """Which memory a value lies in."""

    INPUT = 0
    OUTPUT = 1
    CONSTANT = 2
    ARENA = 3
    PASSED = 4  # from its step to the next one only


@dataclass(frozen=True, slots=True)
class Place:
    """Where a value lies: the number of an input, output or constant, a byte offset in the arena, or 0 if it is passed.

    `pitch` is the number of elements from one row of the last axis to the next: more than its length inside a concat.
    """

    room: Room
    position: int
    pitch: int


@dataclass(frozen=True, slots=True)
class Stage:
    """One element-wise operation of a step. Registers count the accumulator, if there is one, then the stages.

    `operand` is the place among the step's operands that a load reads; `parameters` are value numbers of constants.
    """

    name: str
    sources: Integers = ()
    operand: int = -1
    parameters: Integers = ()
    attributes: Mapping[str, Integers] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Step:
    """One call of the engine. Operands, parameters and result are value numbers; `covers` are those it computes.

    A step may also copy an input or to an output; then its result is numbered beyond the program's values.
    """

    name: str
    operands: Integers
    parameters: Integers
    result: int
    attributes: Mapping[str, Integers]
    stages: tuple[Stage, ...]
    covers: Integers


@dataclass(frozen=True, slots=True)
class ConcatPart:
    """Where a value lies inside the value of a concat: from this row and column on.

    `dense`: its rows follow one another without a gap. Else they are as far apart as those of the whole.
    """

    whole: int
    row: int
    column: int
    dense: bool


@dataclass(frozen=True)
class Draft:
    """Steps in order, before anything has a place.

    A value in `views` holds the elements of another, computed or external, in another shape and needs no step. One in
    `parts` is written straight into the value of a concat. No value is a key of both `views` and `parts`, and no view
    is of another view.
    """

    form: WellFormed
    steps: tuple[Step, ...]
    views: Mapping[int, int] = field(default_factory=dict)
    parts: Mapping[int, ConcatPart] = field(default_factory=dict)
    copies: Mapping[int, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Plan:
    """Steps in order, and the place of every value that they read or write."""

    form: WellFormed
    steps: tuple[Step, ...]
    places: Mapping[int, Place]
    copies: Mapping[
        int, int
    ]  # value numbers beyond the program's, and the value that each holds again
    inside: Mapping[
        int, int
    ]  # those that lie in the buffer of another value, and that value
    arena_bytes: int
    largest_live_bytes: int  # the most that values in the arena take at once, each from its step to its last reader

    def source(self, value: int) -> int:
        """The program's own number of a value that may be a copy."""
        return self.copies.get(value, value)


def row_length(type_: TensorType) -> int:
    """The length of the last axis."""
    return type_.shape[-1] if type_.shape else 1


def size_in_bytes(type_: TensorType) -> int:
    """The bytes of a value stored without gaps."""
    return type_.elements * DTYPES[type_.dtype].itemsize


def integers(attribute: Attribute) -> Integers:
    """An attribute as the engine takes it."""
    if isinstance(attribute, tuple):
        return attribute
    if isinstance(attribute, str):
        return (
            DTYPE_CODES[attribute]
            if attribute in DTYPE_CODES
            else ("nearest", "bilinear").index(attribute),
        )
    return (int(attribute),)


def split(instruction: Instruction) -> tuple[Integers, Integers]:
    """An instruction's operands and its parameters: those that must be constants."""
    spec = INSTRUCTIONS[instruction.name]
    names = [
        spec.inputs[min(place, len(spec.inputs) - 1)]
        for place in range(len(instruction.operands))
    ]
    pairs = list(zip(names, instruction.operands, strict=True))
    return (
        tuple(value for name, value in pairs if name not in spec.constant),
        tuple(value for name, value in pairs if name in spec.constant),
    )


def attributes(instruction: Instruction) -> dict[str, Integers]:
    """All attributes of an instruction as the engine takes them."""
    return {
        name: integers(value) for name, value in instruction.attributes.items()
    }
