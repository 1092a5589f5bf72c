"""The differences of two programs in inputs, constants, instructions and outputs, each with the first that differs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

import numpy as np

from cvm.file import format as file_format
from cvm.program import IntArray, Program
from cvm.runtime import listing


@dataclass(frozen=True)
class PartDifference:
    """How many items of one part differ, and the first of them as each program has it, or "nothing"."""

    part: str
    counts: tuple[int, int]
    differing: int
    index: int
    items: tuple[str, str]


@dataclass(frozen=True)
class ProgramDifference:
    """Two programs side by side. They give the same outputs if their ids are equal."""

    ids: tuple[str, str]
    metadata: tuple[str | None, str | None]
    parts: tuple[PartDifference, ...]

    @property
    def same(self) -> bool:
        """Whether the programs are one, metadata aside."""
        return self.ids[0] == self.ids[1]

    def as_json(self) -> dict[str, Any]:
        """The facts for other programs."""
        return {
            "same": self.same,
            "programs": list(self.ids),
            "metadata": list(self.metadata),
            "differences": [
                {
                    "part": part.part,
                    "counts": list(part.counts),
                    "differing": part.differing,
                    "first": part.index,
                    "items": list(part.items),
                }
                for part in self.parts
            ],
        }


def difference(one: Program, other: Program) -> ProgramDifference:
    """Compare two programs; neither needs a proof."""
    return ProgramDifference(
        (file_format.program_id(one), file_format.program_id(other)),
        (file_format.metadata_digest(one), file_format.metadata_digest(other)),
        tuple(_parts(one, other)),
    )


def show(difference: ProgramDifference, names: tuple[str, str]) -> list[str]:
    """The lines that `cvm diff` prints."""
    if difference.same:
        same = difference.metadata[0] == difference.metadata[1]
        remark = "" if same else "; their metadata differ"
        return [f"same program: {difference.ids[0]}{remark}"]
    lines = ["differ:", *_beside("program id", names, difference.ids)]
    for part in difference.parts:
        counts = " and ".join(f"{count:,}" for count in sorted({*part.counts}))
        differing = f"{part.part}: {part.differing:,} of {counts} differ"
        lines += _beside(
            f"{differing}, number {part.index} first", names, part.items
        )
    return lines


def _beside(
    what: str, names: tuple[str, str], values: tuple[str, str]
) -> list[str]:
    rows = [
        (f"    {name}", value)
        for name, value in zip(names, values, strict=True)
    ]
    return [f"  {what}", *listing.columns(rows, left=2)]


def _parts(one: Program, other: Program) -> Iterator[PartDifference]:
    for part in ("inputs", "constants", "instructions", "outputs"):
        items = getattr(one, part), getattr(other, part)
        indices = [
            index
            for index, pair in enumerate(zip_longest(*items))
            if not _equal(*pair)
        ]
        if indices:
            first = indices[0]
            shown = tuple(_shown(sequence, first) for sequence in items)
            if shown[0] == shown[1]:  # two constants of one type and range
                shown = _elements(items[0][first], items[1][first])
            yield PartDifference(
                part,
                (len(items[0]), len(items[1])),
                len(indices),
                first,
                (shown[0], shown[1]),
            )


def _equal(one: Any, other: Any) -> bool:
    if isinstance(one, np.ndarray) and isinstance(other, np.ndarray):
        return one.dtype == other.dtype and np.array_equal(one, other)
    return type(one) is type(other) and bool(one == other)


def _shown(items: Sequence[Any], index: int) -> str:
    return listing.item(items[index]) if index < len(items) else "nothing"


def _elements(one: IntArray, other: IntArray) -> tuple[str, ...]:
    """The first element in which two constants of one type differ, as each has it."""
    differs = one != other
    place = tuple(np.argwhere(differs)[0].tolist())
    count = f"{int(differs.sum()):,} of {one.size:,} elements differ"
    return tuple(
        f"{listing.item(array)}; {count}, {list(place)} is {int(array[place])}"
        for array in (one, other)
    )
