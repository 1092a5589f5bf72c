"""Writes the units of a program as instructions of another one."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import accumulate

import numpy as np

from cvm.program import (
    Instruction,
    IntArray,
    Meaning,
    Metadata,
    TensorType,
)
from mrt.fold.folded import Folded, with_metadata
from mrt.fold.lanes import ANY, Lanes
from mrt.fold.pieces import Pieces
from mrt.fold.units import Unit
from mrt.quantize.builder import Handle, ProgramBuilder

OWN_SHAPES = frozenset(("dense", "rescale", "table", "interpolate"))
"""Instructions whose constants have a shape of their own, not one that follows the rank."""
NO_STEPS = {"pad": (0, 0, 0, 0), "stride": (1, 1), "dilation": (1, 1)}


@dataclass
class Writer:
    """A program on its way from old values to new handles.

    `rank` is that of vectors in the new program: grouped convolutions take no other than
    4, and `dense` none but 2.
    """

    lanes: Lanes
    rank: int
    builder: ProgramBuilder = field(default_factory=ProgramBuilder)
    sources: dict[Handle, int] = field(default_factory=dict)
    _values: dict[int, Handle] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.pieces = Pieces(self.builder, self.lanes, self.rank)

    def write(self, units: Sequence[Unit]) -> Folded:
        """Return the program of these units, with the meanings of the values that it still has."""
        program = self.lanes.form.program
        for number, input_ in enumerate(program.inputs):
            self._define(number, self.builder.input(input_, Meaning(1.0, 0)))
        for unit in units:
            start = len(self.builder.types)
            self._write(unit)
            self._note(start, unit.members[0])
        for output in program.outputs:
            start = len(self.builder.types)
            handle = self.value(output.value)
            self.builder.output(output.name, handle, Meaning(1.0, 0))
            self._note(start, output.value)
        if program.metadata is not None:
            self._annotate(program.metadata)
        return with_metadata(self.builder, self.sources, program)

    def _note(self, start: Handle, number: int) -> None:
        """Record that all handles from `start` on were made for an old value."""
        handles = range(start, len(self.builder.types))
        self.sources.update(dict.fromkeys(handles, number))

    def value(self, number: int) -> Handle:
        """An old value in the new program, in its own shape."""
        if number not in self._values:
            self._values[number] = self._value(number)
        return self._values[number]

    def _value(self, number: int) -> Handle:
        type_, lanes = self._type(number), self.lanes.by_value.get(number)
        constant = self.lanes.constant(number)
        if constant is not None:
            return self.builder.constant(constant)
        assert lanes is not None, f"%{number} is not written yet"
        handle = self.pieces.simple(lanes, type_.shape)
        if handle is not None:
            return handle
        instruction = self.lanes.instruction(number)
        if self.lanes.is_root(number) or self._is_in_a_row(instruction, lanes):
            return self.pieces.together(lanes, type_.dtype, type_.shape)
        assert instruction is not None
        return self._as_it_was(instruction)

    def _is_in_a_row(
        self, instruction: Instruction | None, lanes: IntArray
    ) -> bool:
        """Whether a concat may be written anew from the pieces that its operands are made of."""
        if instruction is None or instruction.name != "concat":
            return False
        before = lanes.shape[: int(instruction.attributes["axis"])]  # type: ignore[arg-type]
        most_runs = len(instruction.operands) + 1
        return math.prod(before) == 1 and self.pieces.runs(lanes) <= most_runs

    def _as_it_was(self, instruction: Instruction) -> Handle:
        operands = [self.value(value) for value in instruction.operands]
        return self.builder.emit(
            instruction.name, *operands, **instruction.attributes
        )

    def _define(self, number: int, handle: Handle, start: int = 0) -> None:
        count = self._count(number)
        if number in self.lanes.by_value:
            self.pieces.define(number, handle, start + np.arange(count))
        else:
            self._values[number] = handle

    def _write(self, unit: Unit) -> None:
        first = unit.members[0]
        instruction = self.lanes.instruction(first)
        assert instruction is not None
        if unit.kind == "lanes":
            self._write_lanes(unit, instruction)
        elif unit.kind == "rows":
            self._write_rows(unit, instruction)
        elif unit.kind == "join":
            self._write_joined(unit, instruction)
        elif unit.kind == "branches":
            self._write_branches(unit, instruction)
        else:
            self._define(first, self._as_it_was(instruction))

    # -- one instruction for several -------------------------------------------------

    def _write_lanes(self, unit: Unit, instruction: Instruction) -> None:
        """Write one element-wise instruction: all elements of all members in a row."""
        widths = self._widths(unit)
        operands = [
            self._stacked(unit, instruction.name, place, widths)
            for place in range(len(instruction.operands))
        ]
        handle = self.builder.emit(
            instruction.name, *operands, **instruction.attributes
        )
        starts = accumulate(widths, initial=0)
        for number, start in zip(unit.members, starts, strict=False):
            self._define(number, handle, start)

    def _widths(self, unit: Unit) -> list[int]:
        """How many lanes each member has: its elements, if all that they read is in one piece already.

        Else all have as many as the widest, as the groups of a convolution must.
        """
        widths = [self._count(number) for number in unit.members]
        for place, value in enumerate(self.lanes.operands(unit.members[0])):
            if self.lanes.constant(value) is None:
                lanes = self._in_a_row(unit, place)
                if self.pieces.runs(lanes) > 1:
                    return [max(widths)] * len(widths)
        return widths

    def _stacked(
        self, unit: Unit, name: str, place: int, widths: Sequence[int]
    ) -> Handle:
        """One operand of all members, in a row."""
        values = [self._operand(number, place) for number in unit.members]
        arrays = [self.lanes.constant(value) for value in values]
        shape = self.pieces.vector(sum(widths))
        if arrays[0] is None:
            parts = [
                self._filled(value, width)
                for value, width in zip(values, widths, strict=True)
            ]
            dtype = self._type(values[0]).dtype
            return self.pieces.together(np.concatenate(parts), dtype, shape)
        constants = [array for array in arrays if array is not None]
        if name in ("table", "interpolate"):
            return self.builder.constant(constants[0])
        per_channel = name == "rescale"
        places = (1, 2) if per_channel else (place,)
        if self._is_one_number(unit, places):
            number_shape = (1,) if per_channel else self.pieces.vector(1)
            return self.builder.constant(constants[0].reshape(number_shape))
        rows = map(self._spread, unit.members, constants, widths)
        joined = np.concatenate(list(rows))
        if not per_channel:
            joined = joined.reshape(shape)
        return self.builder.constant(joined)

    def _spread(self, number: int, array: IntArray, width: int) -> IntArray:
        """A member's constant for each of its elements in a row, the last one again up to the width."""
        shape = self._type(number).shape
        row = np.broadcast_to(array, shape).reshape(-1)
        return np.pad(row, (0, width - row.size), mode="edge")

    def _is_one_number(self, unit: Unit, places: tuple[int, ...]) -> bool:
        """Whether each of these operands is one constant number, the same for all members."""
        for place in places:
            first, *others = self._constants(unit, place)
            if first.size != 1:
                return False
            if any(
                constant.tobytes() != first.tobytes() for constant in others
            ):
                return False
        return True

    def _write_rows(self, unit: Unit, instruction: Instruction) -> None:
        """Write one instruction for members with the same constants, which are stacked as rows."""
        operands = [
            self._rows(unit, instruction, place)
            for place in range(len(instruction.operands))
        ]
        handle = self.builder.emit(
            instruction.name, *operands, **instruction.attributes
        )
        start = 0
        for number in unit.members:
            self._define(number, handle, start)
            start += self._count(number)

    def _rows(self, unit: Unit, instruction: Instruction, place: int) -> Handle:
        """One operand of all members, stacked as rows; once, if it is constant."""
        value = instruction.operands[place]
        constant = self.lanes.constant(value)
        if constant is not None:
            if instruction.name not in OWN_SHAPES:
                constant = constant.reshape(self.pieces.vector(-1))
            return self.builder.constant(constant)
        lanes = self._in_a_row(unit, place)
        type_ = self._type(value)
        width = self._type(instruction.operands[0]).shape[-1]
        ones = (1,) * (0 if instruction.name == "dense" else self.rank - 2)
        shape = (*ones, lanes.size // width, width)
        return self.pieces.together(lanes, type_.dtype, shape)

    def _write_joined(self, unit: Unit, instruction: Instruction) -> None:
        """Write products of one input as one product: their weights are stacked along the outputs."""
        weights = self._constants(unit, 1)
        biases = self._constants(unit, 2)
        handle = self.builder.emit(
            instruction.name,
            self.value(instruction.operands[0]),
            self.builder.constant(np.concatenate(weights)),
            self.builder.constant(np.concatenate(biases)),
            **instruction.attributes,
        )
        type_ = self.builder.types[handle]
        places = np.arange(type_.elements).reshape(type_.shape)
        start = 0
        for number, bias in zip(unit.members, biases, strict=True):
            member_places = places[..., start : start + bias.size]
            self.pieces.define(number, handle, member_places)
            start += bias.size

    def _write_branches(self, unit: Unit, instruction: Instruction) -> None:
        """Write products of different inputs as one 1x1 convolution, with a group for each."""
        weights = self._constants(unit, 1)
        outputs, inputs = np.max([w.shape for w in weights], axis=0)
        w = np.zeros((len(weights), outputs, 1, 1, inputs), np.int8)
        b = np.zeros((len(weights), outputs), np.int32)
        lanes = []
        for index, number in enumerate(unit.members):
            rows, columns = weights[index].shape
            w[index, :rows, 0, 0, :columns] = weights[index]
            b[index, :rows] = self._constant(number, 2)
            lanes.append(self._filled(self._operand(number, 0), inputs))
        dtype = self._type(instruction.operands[0]).dtype
        x = np.concatenate(lanes)
        handle = self.builder.emit(
            "conv2d",
            self.pieces.together(x, dtype, (1, 1, 1, x.size)),
            self.builder.constant(w.reshape(-1, 1, 1, inputs)),
            self.builder.constant(b.reshape(-1)),
            **NO_STEPS,
            groups=len(weights),
            input_zp=instruction.attributes["input_zp"],
        )
        for index, number in enumerate(unit.members):
            self._define(number, handle, index * int(outputs))

    # -- what they read --------------------------------------------------------------

    def _type(self, number: int) -> TensorType:
        return self.lanes.form.types[number]

    def _count(self, number: int) -> int:
        return self._type(number).elements

    def _operand(self, number: int, place: int) -> int:
        return self.lanes.operands(number)[place]

    def _constant(self, number: int, place: int) -> IntArray:
        constant = self.lanes.constant(self._operand(number, place))
        assert constant is not None
        return constant

    def _constants(self, unit: Unit, place: int) -> list[IntArray]:
        """One operand of each member."""
        return [self._constant(number, place) for number in unit.members]

    def _in_a_row(self, unit: Unit, place: int) -> IntArray:
        """The lanes of one operand of all members."""
        values = [self._operand(number, place) for number in unit.members]
        return np.concatenate([self._filled(value) for value in values])

    def _filled(self, value: int, width: int | None = None) -> IntArray:
        """A value's lanes in a row, and behind them lanes of no meaning up to the width."""
        lanes = self.lanes.by_value[value].reshape(-1)
        short = 0 if width is None else int(width) - lanes.size
        return np.pad(lanes, (0, short), constant_values=ANY)

    def _annotate(self, old: Metadata) -> None:
        """Give the meanings of old values to the tensors that hold just their integers."""
        for number, meaning in old.values.items():
            handle = self._holder(number)
            if handle is None:
                continue
            channels = self.builder.types[handle].shape[-1:]
            old_channels = self._type(number).shape[-1:]
            if not meaning.channels or channels == old_channels:
                self.builder.annotate(handle, meaning)

    def _holder(self, number: int) -> Handle | None:
        """The tensor that holds just an old value's integers, if there is one."""
        lanes = self.lanes.by_value.get(number)
        if number in self._values:
            return self._values[number]
        if lanes is None or self.lanes.constant(number) is not None:
            return None
        return self.pieces.whole(lanes)
