"""A plan as the tuples of integers that pass the engine's door."""

from __future__ import annotations

from typing import Any

from cvm.plan.steps import OPCODES, Place, Plan, Room, Stage, Step
from cvm.program import DTYPE_CODES, TensorType

OperandTuple = tuple[int, int, int, tuple[int, ...], int]


def operands_of_ends(
    plan: Plan,
) -> tuple[list[OperandTuple], list[OperandTuple]]:
    """The tuples of the program's inputs, and those of its outputs."""
    program, types = plan.form.program, plan.form.types
    return (
        [
            _operand(Place(Room.INPUT, n, 0), port.type)
            for n, port in enumerate(program.inputs)
        ],
        [
            _operand(Place(Room.OUTPUT, n, 0), types[port.value])
            for n, port in enumerate(program.outputs)
        ],
    )


def step_tuple(plan: Plan, step: Step) -> tuple[Any, ...]:
    """One step as the engine takes it."""
    first = plan.form.program.first_constant
    return (
        OPCODES[step.name],
        [_value(plan, value) for value in step.operands],
        [value - first for value in step.parameters],
        _value(plan, step.result),
        {name: list(values) for name, values in step.attributes.items()},
        [_stage(stage, first) for stage in step.stages],
    )


def _stage(stage: Stage, first_constant: int) -> tuple[Any, ...]:
    return (
        OPCODES[stage.name],
        list(stage.sources),
        stage.operand,
        [value - first_constant for value in stage.parameters],
        {name: list(values) for name, values in stage.attributes.items()},
    )


def _value(plan: Plan, value: int) -> OperandTuple:
    return _operand(plan.places[value], plan.form.types[plan.source(value)])


def _operand(place: Place, type_: TensorType) -> OperandTuple:
    return (
        int(place.room),
        place.position,
        DTYPE_CODES[type_.dtype],
        type_.shape,
        place.pitch,
    )
