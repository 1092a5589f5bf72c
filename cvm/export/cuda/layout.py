"""Where the values of one sample and the constants lie."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from cvm.export.c.program import CProgram
from cvm.export.cuda.table import TABLE
from cvm.plan.arena import ALIGNMENT, Lifetime, assign_offsets
from cvm.program import IntArray


@dataclass(frozen=True)
class SampleLayout:
    """Byte offsets of values, and of steps' scratch by the number of the value that the step gives; a sample's bytes."""

    values: Mapping[int, int]
    scratch: Mapping[int, int]
    size: int


def lay_out(plan: CProgram) -> SampleLayout:
    """Places for inputs, for all that steps store, and for their scratch."""
    alive = _inputs(plan) | plan.lifetimes()
    for output in plan.form.program.outputs:
        stored = alive[output.value]
        alive[output.value] = Lifetime(
            stored.size, stored.first, len(plan.steps)
        )
    extra = _scratch(plan)
    offsets, size = assign_offsets([*alive.values(), *extra.values()])
    value_offsets = offsets[: len(alive)]
    scratch_offsets = offsets[len(alive) :]
    return SampleLayout(
        dict(zip(alive, value_offsets, strict=True)),
        dict(zip(extra, scratch_offsets, strict=True)),
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
    """The lifetimes of inputs: from the beginning to the last step that reads them."""
    last: dict[int, int] = {}
    for index, step in enumerate(plan.steps):
        last.update(dict.fromkeys(map(plan.root, step.reads), index))
    return {
        number: Lifetime(
            input_.type.elements * plan.width(number), 0, last.get(number, 0)
        )
        for number, input_ in enumerate(plan.form.program.inputs)
    }


def _scratch(plan: CProgram) -> dict[int, Lifetime]:
    lifetimes = {}
    for index, step in enumerate(plan.steps):
        number = step.values[0]
        node = plan.node(number)
        count = TABLE[node.name].scratch
        if count:
            lifetimes[number] = Lifetime(4 * count(node), index, index)
    return lifetimes
