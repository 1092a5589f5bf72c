"""From steps to a plan: copies at the ends where kernels cannot reach, one buffer for each value, one arena for all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from cvm.plan.arena import Lifetime, assign_offsets
from cvm.plan.steps import CHAIN, LINEAR, MOVEMENT, Integers, Place, Plan, Room, Step
from cvm.program import DTYPES, TensorType
from cvm.validate import Proven

PLAIN_READERS = MOVEMENT | {CHAIN}  # steps that take the plain i8 bytes of an input
PLAIN_WRITERS = MOVEMENT | LINEAR | {CHAIN}  # steps that can write the plain i8 bytes of an output


def lay_out(form: Proven, steps: Sequence[Step], parts: Mapping[int, tuple[int, int]] | None = None) -> Plan:
    """Find a place for every value. `parts`: value -> (the concat it is written into, its first column there)."""
    return _Layout(form, list(steps), dict(parts or {})).plan()


class _Layout:
    """Collects copies and lifetimes. Values beyond the program's own are copies."""

    def __init__(self, form: Proven, steps: list[Step], parts: dict[int, tuple[int, int]]) -> None:
        self.form, self.steps, self.parts = form, steps, parts
        self.copies: dict[int, int] = {}
        self.places: dict[int, Place] = {}

    def plan(self) -> Plan:
        self._import_inputs()
        self._place_ends()
        arena_bytes = self._place_buffers()
        return Plan(self.form, tuple(self.steps), self.places, self.copies, arena_bytes)

    def type_of(self, value: int) -> TensorType:
        return self.form.types[self.copies.get(value, value)]

    def _copy(self, value: int) -> tuple[int, Step]:
        number = len(self.form.types) + len(self.copies)
        self.copies[number] = self.copies.get(value, value)
        return number, Step("reshape", (value,), (), number, {"shape": self.type_of(value).shape}, (), ())

    def _import_inputs(self) -> None:
        """An i8 input whose readers need the stored form is copied once."""
        for number, item in enumerate(self.form.program.inputs):
            self.places[number] = Place(Room.INPUT, number, _row(item.type))
            readers = [step for step in self.steps if number in step.operands]
            if item.type.dtype != "i8" or all(step.name in PLAIN_READERS for step in readers):
                continue
            copied, step = self._copy(number)
            self.steps = [step, *(_reading(step, number, copied) for step in self.steps)]

    def _place_ends(self) -> None:
        """Constants lie where they are; an output is written in place unless something else reads it, or as a copy."""
        program = self.form.program
        for number in range(program.first_constant, program.first_instruction):
            self.places[number] = Place(Room.CONSTANT, number - program.first_constant, _row(self.type_of(number)))
        read = {value for step in self.steps for value in step.operands} | set(self.parts)
        writers = {step.result: step for step in self.steps}
        for place, output in enumerate(program.outputs):
            value = output.value
            plain = self.type_of(value).dtype != "i8" or writers[value].name in PLAIN_WRITERS
            if value in read or value in self.places or not plain:
                value, step = self._copy(value)
                self.steps.append(step)
            self.places[value] = Place(Room.OUTPUT, place, _row(self.type_of(value)))

    def _place_buffers(self) -> int:
        spans: dict[int, list[int]] = {}  # buffer, named after a value -> steps that touch it
        for index, step in enumerate(self.steps):
            for value in (*step.operands, step.result):
                if value not in self.places:
                    spans.setdefault(self._buffer(value), []).append(index)
        lifetimes = [Lifetime(_bytes(self.type_of(value)), min(at), max(at)) for value, at in spans.items()]
        offsets, arena_bytes = assign_offsets(lifetimes)
        starts = dict(zip(spans, offsets, strict=True))
        for step in self.steps:
            for value in (*step.operands, step.result):
                if value not in self.places:
                    self.places[value] = self._place_of(value, starts)
        return arena_bytes

    def _buffer(self, value: int) -> int:
        while value in self.parts:
            value = self.parts[value][0]
        return value

    def _place_of(self, value: int, starts: Mapping[int, int]) -> Place:
        buffer, column = value, 0
        while buffer in self.parts:
            buffer, more = self.parts[buffer]
            column += more
        type_ = self.type_of(buffer)
        return Place(Room.ARENA, starts[buffer] + column * DTYPES[type_.dtype].itemsize, _row(type_))


def _reading(step: Step, value: int, instead: int) -> Step:
    operands: Integers = tuple(instead if operand == value else operand for operand in step.operands)
    return Step(step.name, operands, step.parameters, step.result, step.attributes, step.stages, step.covers)


def _row(type_: TensorType) -> int:
    return type_.shape[-1] if type_.shape else 1


def _bytes(type_: TensorType) -> int:
    return type_.elements * DTYPES[type_.dtype].itemsize
