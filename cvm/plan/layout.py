"""From steps to a plan: copies at the ends where kernels cannot reach, one buffer for each value, one arena for all."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise

from cvm.plan.arena import Lifetime, assign_offsets
from cvm.plan.steps import (
    CHAIN,
    LINEAR,
    MOVEMENT,
    ConcatPart,
    Draft,
    Integers,
    Place,
    Plan,
    Room,
    Step,
    row_length,
    size_in_bytes,
)
from cvm.program import DTYPES, TensorType

PLAIN_READERS = MOVEMENT | {
    CHAIN
}  # steps that take the plain i8 bytes of an input
PRODUCTS = {"conv2d", "dense"}  # steps that may pass their sums to the next
PLAIN_WRITERS = (
    MOVEMENT | LINEAR | {CHAIN}
)  # steps that can write the plain i8 bytes of an output


def lay_out(draft: Draft) -> Plan:
    """Find a place for every value that the steps read or write."""
    layout = _Layout(draft)
    layout.import_inputs()
    layout.export_outputs()
    return layout.plan()


class _Layout:
    """Steps and copies as they grow.

    A value's base is itself or what it is a view of; a base's root, the buffer. `outside_arena`
    has the inputs, constants and outputs, and at last what is passed: the room of each, and
    its number there. `former` is the step that passes its result, by the result of its reader.
    """

    def __init__(self, draft: Draft) -> None:
        self.form, self.views = draft.form, draft.views
        self.steps, self.copies = list(draft.steps), dict(draft.copies)
        self.parts: dict[int, ConcatPart] = dict(draft.parts)
        self.former: dict[int, Step] = {}
        program = draft.form.program
        self.outside_arena = {
            number: (Room.INPUT, number)
            for number in range(program.first_constant)
        }
        for number in range(program.first_constant, program.first_instruction):
            place = number - program.first_constant
            self.outside_arena[number] = (Room.CONSTANT, place)

    def import_inputs(self) -> None:
        """An i8 input, or a view of it, that some step needs in the stored form is copied once, before that step."""
        stored: dict[int, int] = {}
        steps: list[Step] = []
        for step in self.steps:
            for value in () if step.name in PLAIN_READERS else step.operands:
                room, _ = self.outside_arena.get(self._base(value), (None, 0))
                if (
                    room is Room.INPUT
                    and self._type(value).dtype == "i8"
                    and value not in stored
                ):
                    copy = self._copy(value)
                    stored[value] = copy.result
                    steps.append(copy)
            steps.append(
                step if step.name in PLAIN_READERS else _reading(step, stored)
            )
        self.steps = steps

    def export_outputs(self) -> None:
        """An output is written in place, or copied there if it is no step's result or something else needs it, too.

        It is the caller's memory: only ever written.
        """
        needed = {
            self._base(value) for step in self.steps for value in step.operands
        }
        bases = [
            self._base(output.value) for output in self.form.program.outputs
        ]
        needed |= {value for value in bases if bases.count(value) > 1}
        writers = {step.result: step for step in self.steps}
        after: dict[int, list[Step]] = {}
        for place, output in enumerate(self.form.program.outputs):
            value = self._base(output.value)
            plain = self._type(value).dtype != "i8" or (
                value in writers and writers[value].name in PLAIN_WRITERS
            )
            if value in needed or value in self.outside_arena or not plain:
                copy = self._copy(output.value)
                after.setdefault(value, []).append(copy)
                value = copy.result
            self.outside_arena[value] = (Room.OUTPUT, place)
        last = [
            step
            for value, copies in after.items()
            if value not in writers
            for step in copies
        ]
        self.steps = [
            step_or_copy
            for step in self.steps
            for step_or_copy in (step, *after.get(step.result, ()))
        ] + last

    def plan(self) -> Plan:
        """The steps as they are now, with a place for each value."""
        for step, reader in self._passes():
            self.outside_arena[step.result] = (Room.PASSED, 0)
            self.former[reader.result] = step
        used = dict.fromkeys(
            value
            for step in self.steps
            for value in (*step.operands, step.result)
        )
        spots = self._spots()
        spans = self._spans(spots)
        overwritten = self._overwritten(spans, spots)
        roots: dict[int, int] = {}
        for value, shortcut in overwritten.items():
            root = roots[value] = roots.get(shortcut, shortcut)
            spans[root] += spans.pop(value)
        lifetimes = [
            Lifetime(size_in_bytes(self._type(root)), min(at), max(at))
            for root, at in spans.items()
        ]
        offsets, arena_bytes = assign_offsets(lifetimes)
        starts = dict(zip(spans, offsets, strict=True))
        starts |= {value: starts[root] for value, root in roots.items()}
        places = {value: self._place(value, spots, starts) for value in used}
        return Plan(
            self.form,
            tuple(self.steps),
            places,
            self.copies,
            self._inside(used),
            arena_bytes,
            self._largest_live(set(overwritten.values())),
        )

    def _overwritten(
        self,
        spans: Mapping[int, list[int]],
        spots: Mapping[int, tuple[int, int, int]],
    ) -> dict[int, int]:
        """By the sums that are written over it, each shortcut that no later step reads.

        Kernels of products read a shortcut element by element, each just before they write its sum. `spans` are the
        steps that touch each buffer.
        """
        overwritten: dict[int, int] = {}
        for index, step in enumerate(self.steps):
            if step.name not in PRODUCTS or not self._fills_buffer(step.result):
                continue
            for value in step.operands[1:]:
                if (
                    self._fills_buffer(value)
                    and max(spans[value]) == index
                    and self._type(value) == self._type(step.result)
                    and value not in self._read_beside(step, value, spots)
                ):
                    overwritten[step.result] = value
                    break
        return overwritten

    def _read_beside(
        self,
        step: Step,
        shortcut: int,
        spots: Mapping[int, tuple[int, int, int]],
    ) -> set[int]:
        """The buffers of what a step reads besides this shortcut, which may be a part of it."""
        others = (value for value in step.operands[1:] if value != shortcut)
        former = self.former.get(step.result)
        passed = () if former is None else former.operands
        read = (*step.operands[:1], *others, *passed)
        return {self._buffer(value, spots) for value in read}

    def _buffer(
        self, value: int, spots: Mapping[int, tuple[int, int, int]]
    ) -> int:
        """The value whose buffer holds this one."""
        base = self._base(value)
        return spots.get(base, (base, 0, 0))[0]

    def _fills_buffer(self, value: int) -> bool:
        """Whether a value is all of a buffer of the arena, not a view or a part."""
        return (
            value not in self.outside_arena
            and value not in self.views
            and value not in self.parts
        )

    def _spans(
        self, spots: Mapping[int, tuple[int, int, int]]
    ) -> dict[int, list[int]]:
        """The steps that read or write each buffer of the arena, in order."""
        spans: dict[int, list[int]] = {}
        for index, step in enumerate(self.steps):
            for value in (*self._read(step), step.result):
                root = self._buffer(value, spots)
                if root not in self.outside_arena:
                    spans.setdefault(root, []).append(index)
        return spans

    def _inside(self, used: Iterable[int]) -> dict[int, int]:
        """The value that each of them lies in, if any: the whole of which it is a part, or what it is a view of."""
        inside: dict[int, int] = {}
        for value in used:
            base = self._base(value)
            if base in self.parts:
                inside[value] = self.parts[base].whole
            elif value in self.views:
                inside[value] = self.views[value]
        return inside

    def _passes(self) -> Iterator[tuple[Step, Step]]:
        """Pairs of steps of products of which the second alone reads the sums of the first: these need not all be in memory."""
        readers = Counter(
            value for step in self.steps for value in step.operands
        )
        viewed = set(self.views.values())
        for step, reader in pairwise(self.steps):
            value = step.result
            if (
                {step.name, reader.name} <= PRODUCTS
                and readers[value] == reader.operands.count(value) == 1
                and value not in self.outside_arena
                and value not in viewed
                and value not in self.parts
                and self._type(value).dtype == "i32"
                and self._type(value).shape == self._type(reader.result).shape
                and step.result not in self.former
            ):
                yield step, reader

    def _read(self, step: Step) -> Integers:
        """The operands of a step, and those of the former if that is computed within it."""
        former = self.former.get(step.result)
        return (
            step.operands if former is None else step.operands + former.operands
        )

    def _place(
        self,
        value: int,
        spots: dict[int, tuple[int, int, int]],
        starts: dict[int, int],
    ) -> Place:
        base, type_ = self._base(value), self._type(value)
        outside = self.outside_arena.get(base)
        if outside:
            room, place = outside
            return Place(room, place, row_length(type_))
        root, offset, pitch = spots.get(base, (base, 0, 0))
        dense = base not in self.parts or self.parts[base].dense
        position = starts[root] + offset * DTYPES[type_.dtype].itemsize
        return Place(
            Room.ARENA, position, row_length(type_) if dense else pitch
        )

    def _spots(self) -> dict[int, tuple[int, int, int]]:
        """For every part its buffer, its first element there, and the pitch of its rows if not dense."""
        spots: dict[int, tuple[int, int, int]] = {}
        for value, part in sorted(
            self.parts.items(), key=lambda entry: -entry[1].whole
        ):  # wholes before their parts
            length = row_length(self._type(part.whole))
            root, start, pitch = spots.get(part.whole, (part.whole, 0, length))
            if part.whole not in self.parts or self.parts[part.whole].dense:
                pitch = length
            spots[value] = (root, start + part.row * pitch + part.column, pitch)
        return spots

    def _largest_live(self, overwritten: set[int]) -> int:
        """A value counts from the step that writes it to the last that reads it, a view of it or a whole around it.

        In the step that overwrites it, it counts no more.
        """
        last: dict[int, int] = {}
        for index, step in enumerate(self.steps):
            for value in self._read(step):
                last[self._base(value)] = index
        for value, part in sorted(
            self.parts.items(), key=lambda entry: -entry[1].whole
        ):
            last[value] = max(last.get(value, 0), last.get(part.whole, 0))
        changes = [0] * (len(self.steps) + 1)
        for index, step in enumerate(self.steps):
            if step.result not in self.outside_arena:
                size = size_in_bytes(self._type(step.result))
                end = max(index, last.get(step.result, 0)) + 1
                changes[index] += size
                changes[end - (step.result in overwritten)] -= size
        live = most = 0
        for change in changes:
            live += change
            most = max(most, live)
        return most

    def _base(self, value: int) -> int:
        return self.views.get(value, value)

    def _type(self, value: int) -> TensorType:
        return self.form.types[self.copies.get(value, value)]

    def _copy(self, value: int) -> Step:
        number = len(self.form.types) + len(self.copies)
        self.copies[number] = self.copies.get(value, value)
        return Step(
            "reshape",
            (value,),
            (),
            number,
            {"shape": self._type(value).shape},
            (),
            (),
        )


def _reading(step: Step, instead: dict[int, int]) -> Step:
    operands: Integers = tuple(
        instead.get(operand, operand) for operand in step.operands
    )
    return Step(
        step.name,
        operands,
        step.parameters,
        step.result,
        step.attributes,
        step.stages,
        step.covers,
    )
