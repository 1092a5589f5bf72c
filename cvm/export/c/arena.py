"""Where values lie between steps.

The arena has one part for each width of integers, so that no byte ever holds integers of two types: C99 lets a compiler
assume that, and a union of all would leave it to the compiler's goodwill.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from cvm.export.c.instruction import C_TYPES
from cvm.export.c.program import CProgram
from cvm.export.c.table import TABLE
from cvm.plan.arena import Lifetime, assign_offsets

PARTS = {1: "int8_t", 2: "int16_t", 4: "int32_t"}


@dataclass(frozen=True)
class Arena:
    """C expressions for the first element of each value and of each step's scratch; each part's bytes, by width."""

    values: Mapping[int, str]
    scratch: Mapping[int, str]
    parts: Mapping[int, int]


def lay_out(plan: CProgram, elsewhere: set[int]) -> Arena:
    """Places for all that steps store, except the values that lie elsewhere."""
    alive = {
        value: lifetime
        for value, lifetime in plan.lifetimes().items()
        if value not in elsewhere
    }
    extra = _scratch(plan)
    values: dict[int, str] = {}
    scratch: dict[int, str] = {}
    parts: dict[int, int] = {}
    for width in PARTS:
        of_width = [value for value in alive if plan.width(value) == width]
        extra_of_width = extra if width == 4 else {}
        buffers = [
            *(alive[value] for value in of_width),
            *extra_of_width.values(),
        ]
        offsets, size = assign_offsets(buffers)
        if size:
            parts[width] = size
        starts = [offset // width for offset in offsets]
        for value, start in zip(of_width, starts, strict=False):
            values[value] = _place(plan, value, start)
        for index, start in zip(
            extra_of_width, starts[len(of_width) :], strict=True
        ):
            scratch[index] = f"arena.bits32 + {start}"
    return Arena(values, scratch, parts)


def _scratch(plan: CProgram) -> dict[int, Lifetime]:
    """The lifetimes of the scratch that steps need, by the index of the step."""
    lifetimes = {}
    for index, step in enumerate(plan.steps):
        node = plan.node(step.values[0])
        count = TABLE[node.name].scratch
        size = 4 * count(node) if count else 0
        if plan.finishes_rows(step):
            size = 4 * node.result.shape[-1]
        if size:
            lifetimes[index] = Lifetime(size, index, index)
    return lifetimes


def _place(plan: CProgram, value: int, start: int) -> str:
    """u8 and bool lie among the signed bytes: C lets an object be read as the unsigned type of its width."""
    place = f"arena.bits{8 * plan.width(value)} + {start}"
    if C_TYPES[plan.form.types[value].dtype] == "uint8_t":
        return f"(uint8_t *)({place})"
    return place
