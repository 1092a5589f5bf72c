"""Writes a program instruction by instruction, proving each as it goes: every rule sees the exact interval of what it reads.

Values are handles in order of creation; `finish` drops what no output needs and numbers the rest as a program does.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass

import numpy as np

from cvm.instructions import INSTRUCTIONS
from cvm.program import (
    DTYPES,
    Attribute,
    Input,
    Instruction,
    IntArray,
    Meaning,
    Metadata,
    Output,
    Program,
    TensorType,
    bounds,
    dtype_name,
)
from cvm.program.bounds import Bounds
from cvm.proof.validate import infer_bounds, infer_type

Handle = int
MOST_GIVEN = 100  # values that a part gives besides the one asked for; a program has at most 1024 outputs


@dataclass(frozen=True, eq=False)
class Part:
    """Some of a program being written: the values that it takes and those that it gives, in the order of its own."""

    program: Program
    read: list[Handle]
    given: list[Handle]


@dataclass(frozen=True)
class _Result:
    value: Handle
    meaning: Meaning


class ProgramBuilder:
    """Collects inputs, constants and instructions; equal constants and equal instructions are stored once."""

    def __init__(self) -> None:
        self.types: list[TensorType] = []
        self.bounds: list[Bounds] = []
        self._inputs: dict[Handle, tuple[Input, Meaning]] = {}
        self._constants: dict[Handle, IntArray] = {}
        self._instructions: dict[Handle, Instruction] = {}
        self._known: dict[object, Handle] = {}
        self._outputs: dict[str, _Result] = {}
        self._meanings: dict[Handle, Meaning] = {}

    def input(self, item: Input, meaning: Meaning) -> Handle:
        """Declare a program input."""
        handle = self._new(item.type, bounds.full(item.type, item.lo, item.hi))
        self._inputs[handle] = (item, meaning)
        return handle

    def constant(self, array: IntArray) -> Handle:
        """A constant tensor; equal ones share one handle."""
        array = np.asarray(array, order="C")
        key = (array.dtype.str, array.shape, hashlib.sha256(array.data).digest())
        if key not in self._known:
            type_ = TensorType(dtype_name(array), array.shape)
            handle = self._known[key] = self._new(
                type_, bounds.of_constant(array, type_)
            )
            self._constants[handle] = array
        return self._known[key]

    def emit(self, name: str, *operands: Handle, **attributes: Attribute) -> Handle:
        """Append an instruction; raises `cvm.errors.Unproven` (nothing appended) if its result may not fit."""
        in_order = {key: attributes.pop(key) for key in INSTRUCTIONS[name].attributes}
        assert not attributes, f"{name} has no attributes {sorted(attributes)}"
        key = (name, operands, tuple(in_order.items()))
        if key not in self._known:
            instruction = Instruction(name, operands, in_order)
            constants = tuple(self._constants.get(value) for value in operands)
            type_ = infer_type(instruction, self.types, constants)
            read = tuple(self.bounds[value] for value in operands)
            proven = infer_bounds(instruction, self.types, constants, read, type_)
            handle = self._known[key] = self._new(type_, proven)
            self._instructions[handle] = instruction
        return self._known[key]

    def annotate(self, value: Handle, meaning: Meaning) -> None:
        """Record what the integers of a value stand for; the first word counts."""
        self._meanings.setdefault(value, meaning)

    def output(self, name: str, value: Handle, meaning: Meaning) -> None:
        """Declare a program output; what is an input or a constant is passed on by an instruction, as outputs must be."""
        if value not in self._instructions:
            value = self.emit("reshape", value, shape=self.types[value].shape)
        self._outputs[name] = _Result(value, meaning)

    @property
    def written(self) -> list[Handle]:
        """The instructions that outputs need, in the program's order."""
        return sorted(self._live())

    def finish(
        self, provenance: Mapping[str, str], labels: Sequence[str] = ()
    ) -> Program:
        """The program: inputs, the constants in order of first use, the instructions that outputs need."""
        instructions = [(handle, self._instructions[handle]) for handle in self.written]
        order = list(self._inputs)
        order += dict.fromkeys(
            v for _, item in instructions for v in item.operands if v in self._constants
        )
        constants = tuple(
            self._constants[handle] for handle in order[len(self._inputs) :]
        )
        order += [handle for handle, _ in instructions]
        number = {handle: index for index, handle in enumerate(order)}
        return Program(
            inputs=tuple(item for item, _ in self._inputs.values()),
            constants=constants,
            instructions=tuple(
                Instruction(
                    item.name, tuple(number[v] for v in item.operands), item.attributes
                )
                for _, item in instructions
            ),
            outputs=tuple(
                Output(name, number[result.value])
                for name, result in self._outputs.items()
            ),
            metadata=Metadata(
                inputs={item.name: meaning for item, meaning in self._inputs.values()},
                outputs={
                    name: result.meaning for name, result in self._outputs.items()
                },
                values={
                    number[h]: self._meanings[h]
                    for h in sorted(self._meanings.keys() & number.keys())
                },
                labels=tuple(labels),
                provenance=dict(provenance),
            ),
        )

    @property
    def inputs(self) -> dict[Handle, Input]:
        """The program's inputs, in order."""
        return {handle: item for handle, (item, _) in self._inputs.items()}

    def header(self) -> Program:
        """A program of the inputs alone, with what they mean."""
        meanings = {item.name: meaning for item, meaning in self._inputs.values()}
        return Program(
            tuple(self.inputs.values()), (), (), (), Metadata(inputs=meanings)
        )

    def part(
        self, target: Handle, known: Set[Handle], *, short: int, room: int
    ) -> Part:
        """What computes one value from others that are known.

        Of more than `short` instructions, it gives those values too that several read: the next part may start from them.
        The last of these, of together at most `room` bytes.
        """
        live: set[Handle] = set()
        waiting = [target]
        while waiting:
            handle = waiting.pop()
            if handle not in live:
                live.add(handle)
                if handle not in known and handle in self._instructions:
                    waiting.extend(self._instructions[handle].operands)
        read = sorted(live & known)
        steps = sorted(live - known - self._constants.keys())
        constants = list(
            dict.fromkeys(
                v
                for step in steps
                for v in self._instructions[step].operands
                if v in self._constants
            )
        )
        number = {
            handle: index for index, handle in enumerate((*read, *constants, *steps))
        }
        inputs = (
            Input(
                f"v{handle}",
                self.types[handle],
                self.bounds[handle].min,
                self.bounds[handle].max,
            )
            for handle in read
        )
        instructions = (self._instructions[handle] for handle in steps)
        shared = self._read_by_several(steps[:-1], room) if len(steps) > short else []
        program = Program(
            inputs=tuple(inputs),
            constants=tuple(self._constants[handle] for handle in constants),
            instructions=tuple(
                Instruction(
                    item.name, tuple(number[v] for v in item.operands), item.attributes
                )
                for item in instructions
            ),
            outputs=tuple(
                Output(f"v{handle}", number[handle]) for handle in (*shared, target)
            ),
        )
        return Part(program, read, [*shared, target])

    def _read_by_several(self, handles: Sequence[Handle], room: int) -> list[Handle]:
        readers = Counter(
            value
            for item in self._instructions.values()
            for value in set(item.operands)
        )
        found: list[Handle] = []
        for handle in reversed(handles):
            if readers[handle] > 1:
                room -= (
                    self.types[handle].elements
                    * DTYPES[self.types[handle].dtype].itemsize
                )
                if room < 0 or len(found) == MOST_GIVEN:
                    break
                found.append(handle)
        return found[::-1]

    def _new(self, type_: TensorType, proven: Bounds) -> Handle:
        self.types.append(type_)
        self.bounds.append(proven)
        return len(self.types) - 1

    def _live(self) -> set[Handle]:
        live: set[Handle] = set()
        waiting = [result.value for result in self._outputs.values()]
        while waiting:
            handle = waiting.pop()
            if handle in self._instructions and handle not in live:
                live.add(handle)
                waiting.extend(self._instructions[handle].operands)
        return live
