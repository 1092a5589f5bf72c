"""Concats that need no step: what computes a part writes it straight into the whole, the other parts are copied there.

Along the last axis a part is a band of columns: its rows are as far apart as those of the whole (`Place.pitch`). Along
another axis that only axes of length 1 precede, a part is a run of whole rows. Along any other a concat stays a step.
"""

from __future__ import annotations

from dataclasses import replace
from math import prod

from cvm.plan.steps import (
    CHAIN,
    LINEAR,
    MOVEMENT,
    POOLING,
    ConcatPart,
    Draft,
    Step,
    row_length,
)
from cvm.program import DTYPES

PITCHED_WRITERS = LINEAR | MOVEMENT | POOLING | {CHAIN}
PITCHED_READERS = {
    CHAIN,
    "concat",
}  # of any operand; linear steps read what they load so, some their x, too
PITCHED_X = {"conv2d", "dense"}
MIN_ROW_BYTES = 16  # measured: a chain that stores shorter rows one by one takes longer than with a concat behind it


def dissolve_concats(draft: Draft) -> Draft:
    """Replace every concat that need not be a step by copies of those parts that are not written straight into it.

    The last concat comes first, so that what an inner one's parts are written into is known when its turn comes.
    """
    dissolver = _Dissolver(draft)
    steps = [
        replaced
        for step in reversed(draft.steps)
        for replaced in reversed(dissolver.replace(step))
    ]
    return replace(
        draft,
        steps=tuple(reversed(steps)),
        parts=dissolver.parts,
        copies=dissolver.copies,
    )


class _Dissolver:
    def __init__(self, draft: Draft) -> None:
        self.draft, self.types = draft, draft.form.types
        self.parts: dict[int, ConcatPart] = dict(draft.parts)
        self.copies: dict[int, int] = dict(draft.copies)
        self.pitches: dict[int, int] = {}  # of parts that are not dense
        self.gapped: dict[
            int, bool
        ] = {}  # computed once: a base may have many wholes and readers
        self.writers = {step.result: step for step in draft.steps}
        self.shown: dict[int, set[int]] = {}  # a value, and it and its views
        for value in (*draft.views, *self.writers):
            self.shown.setdefault(self._base(value), {self._base(value)}).add(
                value
            )
        self.readers: dict[int, list[tuple[Step, int]]] = {}
        for step in draft.steps:
            for place, value in enumerate(step.operands):
                self.readers.setdefault(value, []).append((step, place))
        self.outputs = {
            self._base(output.value) for output in draft.form.program.outputs
        }

    def replace(self, step: Step) -> list[Step]:
        """The step itself, or the copies that remain of it."""
        parts = (
            self._parts(step)
            if step.name == "concat" and step.result not in self.outputs
            else []
        )
        straight: dict[int, ConcatPart] = {}
        copied: list[tuple[int, ConcatPart]] = []
        for value, part in zip(step.operands, parts, strict=bool(parts)):
            base = self._base(value)
            if base not in straight and self._is_straight(base, part):
                straight[base] = part
            else:
                copied.append((value, part))
        if not straight:
            return [step]
        pitch = self._pitch(step.result)
        self.parts |= straight
        self.pitches |= {
            value: pitch for value, part in straight.items() if not part.dense
        }
        return [self._copy(value, part) for value, part in copied]

    def _base(self, value: int) -> int:
        return self.draft.views.get(value, value)

    def _pitch(self, value: int) -> int:
        return self.pitches.get(value, row_length(self.types[value]))

    def _parts(self, step: Step) -> list[ConcatPart]:
        """Where each operand lies in the result; nothing if some would be neither columns nor rows of it."""
        shape = self.types[step.result].shape
        axis = step.attributes["axis"][0]
        start = 0
        columns = axis == len(shape) - 1
        if not columns and any(size != 1 for size in shape[:axis]):
            return []
        parts = []
        for value in step.operands:
            type_ = self.types[value]
            row, column = (
                (0, start)
                if columns
                else (start * prod(shape[axis + 1 : -1]), 0)
            )
            dense = row_length(type_) in (
                type_.elements,
                self._pitch(step.result),
            )
            parts.append(ConcatPart(step.result, row, column, dense))
            start += type_.shape[axis]
        return parts

    def _is_straight(self, base: int, part: ConcatPart) -> bool:
        """Whether the step that computes a part may write it into the whole.

        It lies in one whole only, and nowhere but in the arena.
        """
        if (
            base not in self.writers
            or base in self.parts
            or base in self.outputs
        ):
            return False
        if base not in self.gapped:
            self.gapped[base] = self._may_have_gaps(base)
        return part.dense or self.gapped[base]

    def _may_have_gaps(self, base: int) -> bool:
        """Whether its writer, all its readers and all its views can skip gaps between its rows."""
        type_, views = self.types[base], self.shown[base]
        length = row_length(type_)
        return (
            self.writers[base].name in PITCHED_WRITERS
            and length * DTYPES[type_.dtype].itemsize >= MIN_ROW_BYTES
            and all(row_length(self.types[view]) == length for view in views)
            and all(
                self._skips_gaps(*reader)
                for view in views
                for reader in self.readers.get(view, ())
            )
        )

    def _skips_gaps(self, step: Step, place: int) -> bool:
        if step.name in PITCHED_READERS:
            return True
        loaded = place >= (2 if step.name == "matmul" else 1)
        pitched_x = (
            step.name in PITCHED_X
            and self.types[step.operands[place]].dtype == "i8"
        )
        return step.name in LINEAR and (loaded or pitched_x)

    def _copy(self, value: int, part: ConcatPart) -> Step:
        """A concat of one, since a concat reads and writes rows with gaps."""
        number = len(self.types) + len(self.copies)
        self.copies[number], self.parts[number] = value, part
        return Step(
            "concat",
            (value,),
            (),
            number,
            {"axis": (self.types[value].rank - 1,)},
            (),
            (),
        )
