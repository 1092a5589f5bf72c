"""One step for each instruction, for traced runs, which need every value."""

from __future__ import annotations

from cvm.plan.layout import lay_out
from cvm.plan.steps import (
    CHAIN,
    LOAD,
    STAGES,
    Draft,
    Plan,
    Stage,
    Step,
    attributes,
    split,
)
from cvm.program import Instruction
from cvm.proof.validate import WellFormed


def unfused(form: WellFormed) -> Plan:
    """The instructions in order, each by itself."""
    program = form.program
    steps = (
        step_of(instruction, number)
        for number, instruction in enumerate(
            program.instructions, program.first_instruction
        )
    )
    return lay_out(Draft(form, tuple(steps)))


def step_of(instruction: Instruction, number: int) -> Step:
    """One instruction as one step."""
    operands, parameters = split(instruction)
    if instruction.name not in STAGES:
        return Step(
            instruction.name,
            operands,
            parameters,
            number,
            attributes(instruction),
            (),
            (number,),
        )
    loads = tuple(Stage(LOAD, operand=place) for place in range(len(operands)))
    sources = tuple(range(len(operands)))
    stage = Stage(
        instruction.name, sources, -1, parameters, attributes(instruction)
    )
    return Step(CHAIN, operands, (), number, {}, (*loads, stage), (number,))
