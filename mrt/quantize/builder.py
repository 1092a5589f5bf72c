"""Writes a program instruction by instruction, and proves each as it is written.

The proof lets every rule read the exact interval of its operands. Values are handles in
order of creation; `finish` drops those that no output needs and numbers the rest as a
program does.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, replace

import numpy as np

from cvm.file.format import ALIGNMENT
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
    fits_4_bits,
)
from cvm.program.bounds import Bounds
from cvm.proof.validate import infer_bounds, infer_type

Handle = int
MOST_RESULTS = 100
"""Results of a subprogram besides its target; a program has at most 1024 outputs."""


@dataclass(frozen=True, eq=False)
class Subprogram:
    """Some instructions of a program being written, as a program of their own.

    `operands` and `results` are the handles of its inputs and outputs, in order.
    """

    program: Program
    operands: list[Handle]
    results: list[Handle]


@dataclass(frozen=True)
class _Result:
    value: Handle
    meaning: Meaning


class ProgramBuilder:
    """Collects inputs, constants and instructions.

    Equal constants and equal instructions are stored once.
    """

    def __init__(self) -> None:
        self.types: list[TensorType] = []
        self.bounds: list[Bounds] = []
        self._inputs: dict[Handle, tuple[Input, Meaning]] = {}
        self._constants: dict[Handle, IntArray] = {}
        self._instructions: dict[Handle, Instruction] = {}
        self._interned: dict[object, Handle] = {}
        self._outputs: dict[str, _Result] = {}
        self._meanings: dict[Handle, Meaning] = {}

    def input(self, port: Input, meaning: Meaning) -> Handle:
        """Declare a program input."""
        interval = bounds.full(port.type, port.lo, port.hi)
        handle = self._new(port.type, interval)
        self._inputs[handle] = (port, meaning)
        return handle

    def constant(self, array: IntArray) -> Handle:
        """Store a constant tensor; equal ones share one handle."""
        array = np.asarray(array, order="C")
        digest = hashlib.sha256(array.data).digest()
        key = (array.dtype.str, array.shape, digest)
        if key not in self._interned:
            type_ = TensorType(dtype_name(array), array.shape)
            handle = self._new(type_, bounds.of_constant(array, type_))
            self._interned[key] = handle
            self._constants[handle] = array
        return self._interned[key]

    def emit(
        self, name: str, *operands: Handle, **attributes: Attribute
    ) -> Handle:
        """Append an instruction.

        Raises `cvm.errors.Unproven` and appends nothing if its result may not fit.
        """
        in_order = {
            key: attributes.pop(key) for key in INSTRUCTIONS[name].attributes
        }
        assert not attributes, f"{name} has no attributes {sorted(attributes)}"
        key = (name, operands, tuple(in_order.items()))
        if key not in self._interned:
            instruction = Instruction(name, operands, in_order)
            constants = tuple(self._constants.get(value) for value in operands)
            type_ = infer_type(instruction, self.types, constants)
            read = tuple(self.bounds[value] for value in operands)
            proven = infer_bounds(
                instruction, self.types, constants, read, type_
            )
            handle = self._new(type_, proven)
            self._interned[key] = handle
            self._instructions[handle] = instruction
        return self._interned[key]

    def annotate(self, value: Handle, meaning: Meaning) -> None:
        """Record the meaning of a value's integers, unless one is recorded."""
        self._meanings.setdefault(value, meaning)

    def output(self, name: str, value: Handle, meaning: Meaning) -> None:
        """Declare a program output.

        An output must be the result of an instruction, so an input or a constant is
        passed on by one.
        """
        if value not in self._instructions:
            value = self.emit("reshape", value, shape=self.types[value].shape)
        self._outputs[name] = _Result(value, meaning)

    @property
    def written(self) -> list[Handle]:
        """The instructions that outputs need, in the program's order."""
        return sorted(self._live())

    def finish(
        self,
        provenance: Mapping[str, str],
        labels: Sequence[str] = (),
        *,
        packs: bool = False,
    ) -> Program:
        """Return the program, with constants in order of first use.

        It has the instructions that outputs need and no others. If it `packs`, its file
        stores in 4 bits each constant that is smaller so.
        """
        steps = self.written
        instructions = [self._instructions[handle] for handle in steps]
        constants = self._constants_of(instructions)
        number = _numbered((*self._inputs, *constants, *steps))
        outputs = (
            Output(name, number[result.value])
            for name, result in self._outputs.items()
        )
        arrays = tuple(self._constants[handle] for handle in constants)
        return Program(
            inputs=tuple(self.inputs.values()),
            constants=arrays,
            instructions=_renumbered(instructions, number),
            outputs=tuple(outputs),
            metadata=self._metadata(number, provenance, labels),
            packed=_packed(arrays) if packs else frozenset(),
        )

    def _metadata(
        self,
        number: Mapping[Handle, int],
        provenance: Mapping[str, str],
        labels: Sequence[str],
    ) -> Metadata:
        handles = sorted(self._meanings.keys() & number.keys())
        outputs = {
            name: result.meaning for name, result in self._outputs.items()
        }
        return Metadata(
            inputs=self._input_meanings(),
            outputs=outputs,
            values={
                number[handle]: self._meanings[handle] for handle in handles
            },
            labels=tuple(labels),
            provenance=dict(provenance),
        )

    def _input_meanings(self) -> dict[str, Meaning]:
        return {
            input_.name: meaning for input_, meaning in self._inputs.values()
        }

    @property
    def inputs(self) -> dict[Handle, Input]:
        """The program's inputs, in order."""
        return {handle: input_ for handle, (input_, _) in self._inputs.items()}

    def header(self) -> Program:
        """Return a program of the inputs alone, with their meanings."""
        metadata = Metadata(inputs=self._input_meanings())
        return Program(tuple(self.inputs.values()), (), (), (), metadata)

    def subprogram(
        self, target: Handle, available: Set[Handle], *, short: int, room: int
    ) -> Subprogram:
        """Return the instructions that compute one value from other values that are available.

        A subprogram of more than `short` instructions also results in the values that
        several instructions read, since the next subprogram may start from them: the
        last of these, of together at most `room` bytes.
        """
        needed = self._needed(target, available)
        operands = sorted(needed & available)
        steps = sorted(needed - available - self._constants.keys())
        results = [target]
        if len(steps) > short:
            results = [*self._read_by_several(steps[:-1], room), target]
        instructions = [self._instructions[handle] for handle in steps]
        constants = self._constants_of(instructions)
        number = _numbered((*operands, *constants, *steps))
        program = Program(
            inputs=tuple(self._as_input(handle) for handle in operands),
            constants=tuple(self._constants[handle] for handle in constants),
            instructions=_renumbered(instructions, number),
            outputs=tuple(
                Output(f"v{handle}", number[handle]) for handle in results
            ),
        )
        return Subprogram(program, operands, results)

    def _needed(self, target: Handle, available: Set[Handle]) -> set[Handle]:
        """Return the values from which one value is computed, back to those available."""
        needed: set[Handle] = set()
        waiting = [target]
        while waiting:
            handle = waiting.pop()
            if handle in needed:
                continue
            needed.add(handle)
            if handle not in available and handle in self._instructions:
                waiting.extend(self._instructions[handle].operands)
        return needed

    def _as_input(self, handle: Handle) -> Input:
        proven = self.bounds[handle]
        return Input(f"v{handle}", self.types[handle], proven.min, proven.max)

    def _constants_of(
        self, instructions: Sequence[Instruction]
    ) -> list[Handle]:
        """Return the constants that instructions read, in order of first use."""
        constants: dict[Handle, None] = {}
        for instruction in instructions:
            for operand in instruction.operands:
                if operand in self._constants:
                    constants[operand] = None
        return list(constants)

    def _read_by_several(
        self, handles: Sequence[Handle], room: int
    ) -> list[Handle]:
        """Return the last of these that several instructions read, of at most `room` bytes."""
        readers: Counter[Handle] = Counter()
        for instruction in self._instructions.values():
            readers.update(set(instruction.operands))
        shared: list[Handle] = []
        for handle in reversed(handles):
            if readers[handle] <= 1:
                continue
            type_ = self.types[handle]
            room -= type_.elements * DTYPES[type_.dtype].itemsize
            if room < 0 or len(shared) == MOST_RESULTS:
                break
            shared.append(handle)
        return shared[::-1]

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


def _packed(arrays: Sequence[IntArray]) -> frozenset[int]:
    """Return the constants, by index, that a file can store in 4 bits, and that are larger than its alignment."""
    return frozenset(
        index
        for index, array in enumerate(arrays)
        if array.size > ALIGNMENT and fits_4_bits(array)
    )


def _numbered(handles: Iterable[Handle]) -> dict[Handle, int]:
    """Return the number of each handle in a program with its values in this order."""
    return {handle: number for number, handle in enumerate(handles)}


def _renumbered(
    instructions: Iterable[Instruction], number: Mapping[Handle, int]
) -> tuple[Instruction, ...]:
    """Return the instructions with the numbers of a program in place of handles."""
    return tuple(
        replace(
            instruction,
            operands=tuple(number[operand] for operand in instruction.operands),
        )
        for instruction in instructions
    )
