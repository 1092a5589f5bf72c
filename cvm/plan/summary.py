"""A plan for people and for other programs: every step, the place of its value, and the total memory."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from cvm.plan.steps import (
    CHAIN,
    LINEAR,
    LOAD,
    POOLING,
    Integers,
    Plan,
    Room,
    Step,
    size_in_bytes,
)
from cvm.program import TensorType
from cvm.proof.cost import work_of
from cvm.runtime.listing import columns, counted

_HEADINGS = ("step", "what", "values", "result", "lies in", "MACs", "constants")


@dataclass(frozen=True)
class StepSummary:
    """One step, described without the engine."""

    what: str
    values: Integers  # that it computes; none for a copy
    result: str
    place: str
    multiply_accumulates: int
    constant_bytes: int


def summarize(plan: Plan) -> list[StepSummary]:
    """The steps of a plan in order."""
    return [_summary(plan, step) for step in plan.steps]


def as_json(plan: Plan, program_id: str) -> dict[str, Any]:
    """Everything that the table shows."""
    return {
        "program": program_id,
        "instructions": len(plan.form.program.instructions),
        "steps": [asdict(step) for step in summarize(plan)],
        "arena_bytes": plan.arena_bytes,
        "largest_live_bytes": plan.largest_live_bytes,
        "constant_bytes": _constant_bytes(plan),
    }


def show(plan: Plan, program_id: str) -> list[str]:
    """A line for each step, then the totals."""
    rows: list[tuple[str, ...]] = [_HEADINGS]
    for number, step in enumerate(summarize(plan)):
        counts = (
            f"{count:,}" if count else "-"
            for count in (step.multiply_accumulates, step.constant_bytes)
        )
        rows.append(
            (
                str(number),
                step.what,
                _ranges(step.values),
                step.result,
                step.place,
                *counts,
            )
        )
    instructions = plan.form.program.instructions
    stepless = len(instructions) - sum(len(step.covers) for step in plan.steps)
    arena, live = plan.arena_bytes, plan.largest_live_bytes
    ratio = f", {arena / live:.2f} times that" if live else ""
    return [
        f"plan of program {program_id}",
        "",
        *columns(rows, left=5),
        "",
        f"{counted(len(instructions), 'instruction')} in {counted(len(plan.steps), 'step')}; {stepless:,} need none",
        f"values live at once  {live:,} bytes, at most",
        f"arena                {arena:,} bytes{ratio}",
        f"constants            {_constant_bytes(plan):,} bytes",
    ]


def _constant_bytes(plan: Plan) -> int:
    return sum(array.nbytes for array in plan.form.program.constants)


def _summary(plan: Plan, step: Step) -> StepSummary:
    program, types = plan.form.program, plan.form.types
    constants = range(program.first_constant, program.first_instruction)
    read = {
        *step.parameters,
        *step.operands,
        *(value for stage in step.stages for value in stage.parameters),
    }
    head = _head(plan, step)
    work = 0
    if head is not None:
        instruction = program.instructions[head - program.first_instruction]
        work = work_of(
            instruction, [types[v] for v in instruction.operands], types[head]
        ).multiply_accumulates
    return StepSummary(
        _what(plan, step),
        step.covers,
        str(_type(plan, step.result)),
        _place(plan, step.result),
        work,
        sum(
            size_in_bytes(types[value]) for value in read if value in constants
        ),
    )


def _head(plan: Plan, step: Step) -> int | None:
    """The value of the step's own instruction, which its stages go on from."""
    first = plan.form.program.first_instruction
    instructions = plan.form.program.instructions
    return next(
        (
            value
            for value in step.covers
            if instructions[value - first].name == step.name
        ),
        None,
    )


def _type(plan: Plan, value: int) -> TensorType:
    return plan.form.types[plan.source(value)]


def _what(plan: Plan, step: Step) -> str:
    stages = [stage.name for stage in step.stages if stage.name != LOAD]
    if not step.covers:
        return f"copy %{plan.source(step.operands[0])}"
    return " + ".join(
        stages if step.name == CHAIN else [_own(plan, step), *stages]
    )


def _own(plan: Plan, step: Step) -> str:
    """The instruction with its sizes: conv2d 3x3/2 64->128."""
    if step.name in POOLING:
        return f"{step.name} {_window(step.attributes['kernel'], step.attributes['stride'])}"
    if step.name not in LINEAR:
        return step.name
    x, w = (
        _type(plan, value).shape
        for value in (
            step.operands[0],
            (*step.parameters, *step.operands[1:])[0],
        )
    )
    if step.name == "matmul":
        return f"matmul {x[1]}x{x[2]}x{w[2]}"
    if step.name == "dense":
        return f"dense {w[1]}->{w[0]}"
    groups = step.attributes["groups"][0]
    grouped = (
        ""
        if groups == 1
        else " depthwise"
        if groups == x[3]
        else f" in {groups} groups"
    )
    return f"{step.name} {_window(w[1:3], step.attributes['stride'])} {x[3]}->{w[0]}{grouped}"


def _window(kernel: Integers, stride: Integers) -> str:
    """3x3, 3x3/2, 1x7/1x2."""
    size, by = ("x".join(map(str, pair)) for pair in (kernel, stride))
    return (
        size
        if by == "1x1"
        else f"{size}/{stride[0]}"
        if stride[0] == stride[1]
        else f"{size}/{by}"
    )


def _ranges(values: Integers) -> str:
    """%259, %261..%263."""
    starts = [value for value in values if value - 1 not in values]
    ends = [value for value in values if value + 1 not in values]
    return ", ".join(
        f"%{a}" if a == b else f"%{a}..%{b}"
        for a, b in zip(starts, ends, strict=True)
    )


def _place(plan: Plan, value: int) -> str:
    place, type_ = plan.places[value], _type(plan, value)
    if place.room is Room.OUTPUT:
        return f"output {plan.form.program.outputs[place.position].name}"
    if place.room is Room.PASSED:
        return "passed to the next step"
    length = type_.shape[-1] if type_.shape else 1
    elements = (type_.elements // length - 1) * place.pitch + length
    end = place.position + elements * size_in_bytes(type_) // type_.elements
    suffix = f", part of %{plan.inside[value]}" if value in plan.inside else ""
    return f"arena {place.position:,}..{end:,}{suffix}"
