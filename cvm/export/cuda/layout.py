"""Where the values of one sample lie, and where the constants."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from cvm.export.c.program import CProgram
from cvm.export.cuda.table import TABLE
from cvm.plan.arena import ALIGNMENT, Lifetime, assign_offsets
from cvm.program import IntArray


@dataclass(frozen=True)
class SampleLayout:
    """Byte offsets of values, and of what steps need besides, by the number of the value that they give; a sample's bytes."""

    values: Mapping[int, int]
    scratch: Mapping[int, int]
    size: int


def lay_out(plan: CProgram) -> SampleLayout:
    """Places for inputs, for all that steps store, and for what they need besides."""
    alive = _inputs(plan) | plan.lifetimes()
    for item in plan.form.program.outputs:
        stored = alive[item.value]
        alive[item.value] = Lifetime(stored.size, stored.first, len(plan.steps))
    extra = _scratch(plan)
    offsets, size = assign_offsets([*alive.values(), *extra.values()])
    own, others = offsets[: len(alive)], offsets[len(alive) :]
    return SampleLayout(
        dict(zip(alive, own, strict=True)),
        dict(zip(extra, others, strict=True)),
        size,
    )


def packed(arrays: list[IntArray]) -> tuple[list[int], bytes]:
    """The offsets of arrays in one run of bytes, and the bytes."""
    offsets, parts, end = [], [], 0
    for array in arrays:
        offsets.append(end)
        data = array.astype(array.dtype.newbyteorder("<")).tobytes()
        parts.append(data + bytes(-len(data) % ALIGNMENT))
        end += len(parts[-1])
    return offsets, b"".join(parts)


def _inputs(plan: CProgram) -> dict[int, Lifetime]:
    """Inputs lie there from the beginning to the last step that reads them."""
    last: dict[int, int] = {}
    for index, step in enumerate(plan.steps):
        last.update(dict.fromkeys(map(plan.root, step.reads), index))
    return {
        number: Lifetime(
            item.type.elements * plan.width(number), 0, last.get(number, 0)
        )
        for number, item in enumerate(plan.form.program.inputs)
    }


def _scratch(plan: CProgram) -> dict[int, Lifetime]:
    found = {}
    for index, step in enumerate(plan.steps):
        number = step.values[0]
        node = plan.node(number)
        count = TABLE[node.name].scratch
        if count:
            found[number] = Lifetime(4 * count(node), index, index)
    return found
