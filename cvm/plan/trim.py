"""A slice that cuts off only rows and columns that the next convolution never reaches needs no step."""

from __future__ import annotations

from dataclasses import replace

from cvm.plan.steps import Draft, Step


def drop_trims(draft: Draft) -> Draft:
    """Let such convolutions read the unsliced value, of which they reach no more than of the slice."""
    slices = {step.result: step for step in draft.steps if step.name == "slice"}
    readers: dict[int, list[Step]] = {value: [] for value in slices}
    for step in draft.steps:
        for value in step.operands:
            if value in readers:
                readers[value].append(step)
    needed = {output.value for output in draft.form.program.outputs} | set(
        draft.views.values()
    )
    dropped = {
        value: cut.operands[0]
        for value, cut in slices.items()
        if value not in needed
        and all(_may_trim(draft, cut, reader) for reader in readers[value])
    }
    steps = tuple(
        _reading(step, dropped)
        for step in draft.steps
        if step.result not in dropped
    )
    return replace(draft, steps=steps)


def _may_trim(draft: Draft, cut: Step, reader: Step) -> bool:
    """Whether a conv2d gives the same result without the slice: same corner, less than a step cut off."""
    if (
        reader.name != "conv2d"
        or cut.operands[0] < draft.form.program.first_instruction
    ):
        return False
    full, trimmed = (
        draft.form.types[value].shape for value in (cut.operands[0], cut.result)
    )
    if (
        reader.operands[0] != cut.result  # its stages load it
        or any(cut.attributes["start"])
        or (full[0], full[3]) != (trimmed[0], trimmed[3])
        or reader.operands.count(cut.result) > 1
    ):
        return False
    pad, stride, dilation = (
        reader.attributes[name] for name in ("pad", "stride", "dilation")
    )
    kernel = draft.form.types[reader.parameters[0]].shape[1:3]
    if any(
        pad[2 * axis + 1] and full[1 + axis] != trimmed[1 + axis]
        for axis in (0, 1)
    ):
        return False
    counts = [
        [
            (
                size[1 + i]
                + sum(pad[2 * i : 2 * i + 2])
                - (kernel[i] - 1) * dilation[i]
                - 1
            )
            // stride[i]
            for i in (0, 1)
        ]
        for size in (full, trimmed)
    ]
    return counts[0] == counts[1]


def _reading(step: Step, dropped: dict[int, int]) -> Step:
    if dropped.keys().isdisjoint(step.operands):
        return step
    operands = tuple(dropped.get(value, value) for value in step.operands)
    return replace(
        step, operands=operands, attributes={**step.attributes, "trims": (1,)}
    )
