"""One step for each instruction: what a traced run needs, since it must see every value."""

from __future__ import annotations

from cvm.plan.steps import CHAIN, LOAD, STAGES, Stage, Step, attributes, split
from cvm.program import Instruction, Program


def unfused(program: Program) -> list[Step]:
    """The instructions in order, each by itself."""
    return [step_of(item, number) for number, item in enumerate(program.instructions, program.first_instruction)]


def step_of(instruction: Instruction, number: int) -> Step:
    """One instruction as one step."""
    operands, parameters = split(instruction)
    if instruction.name not in STAGES:
        return Step(instruction.name, operands, parameters, number, attributes(instruction), (), (number,))
    loads = tuple(Stage(LOAD, operand=place) for place in range(len(operands)))
    sources = tuple(range(len(operands)))
    stage = Stage(instruction.name, sources, -1, parameters, attributes(instruction))
    return Step(CHAIN, operands, (), number, {}, (*loads, stage), (number,))
