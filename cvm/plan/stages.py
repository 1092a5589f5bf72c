"""A region as the step that computes it: its linear instruction if it has one, its stages in the order of their use."""

from __future__ import annotations

from collections.abc import Mapping

from cvm.plan.facts import linear_attributes, stage_attributes
from cvm.plan.halves import Halves
from cvm.plan.regions import Region
from cvm.plan.steps import CHAIN, LINEAR, LOAD, Stage, Step, split
from cvm.program import Instruction
from cvm.proof.validate import WellFormed


def step_of_region(
    form: WellFormed, region: Region, halves: Mapping[int, Halves]
) -> Step:
    """The step. The operands that its stages load come after those of the linear instruction.

    A sum of halves has the parameters of the low product, then those of the high one.
    """
    sum_of_halves = next((value for value in region if value in halves), None)
    writer = _Writer(form, region, sum_of_halves)
    writer.visit(region[-1])
    loaded, stages = tuple(writer.operands), tuple(writer.stages)
    covers = tuple(value for value in region if value not in writer.reshapes)
    if writer.head is None:
        return Step(CHAIN, loaded, (), region[-1], {}, stages, covers)
    joined = halves.get(writer.head)
    number = writer.head if joined is None else joined.low
    instruction = writer.instructions[number]
    own_attributes = linear_attributes(form, number, instruction)
    parameters = split(instruction)[1]
    if joined is not None:
        own_attributes["low_bits"] = (joined.low_bits,)
        parameters += split(writer.instructions[joined.high])[1]
    return Step(
        instruction.name,
        loaded,
        parameters,
        region[-1],
        own_attributes,
        stages,
        covers,
    )


class _Writer:
    """Writes the stages of a region: loads right before their readers, the accumulator's stages first.

    So the registers in use at once are few, and steps of one kind have their stages in one order.
    """

    def __init__(
        self, form: WellFormed, region: Region, sum_of_halves: int | None
    ) -> None:
        first = form.program.first_instruction
        instructions = form.program.instructions
        self.form = form
        self.instructions: dict[int, Instruction] = {
            value: instructions[value - first] for value in region
        }
        first_linear = next(
            (
                value
                for value, instruction in self.instructions.items()
                if instruction.name in LINEAR
            ),
            None,
        )
        self.head = first_linear if sum_of_halves is None else sum_of_halves
        self.operands = (
            []
            if first_linear is None
            else list(split(self.instructions[first_linear])[0])
        )
        self.registers = {} if self.head is None else {self.head: 0}
        self.reshapes = {
            value: instruction.operands[0]
            for value, instruction in self.instructions.items()
            if instruction.name == "reshape"
        }
        self.accumulated = set(
            self.registers
        )  # what depends on the accumulator
        self.stages: list[Stage] = []
        for value, instruction in self.instructions.items():
            if not self.accumulated.isdisjoint(instruction.operands):
                self.accumulated.add(value)

    def visit(self, value: int) -> None:
        """Bring a value into a register. No deeper than the engine allows stages."""
        if value in self.reshapes:
            self.visit(self.reshapes[value])
            self.registers[value] = self.registers[self.reshapes[value]]
        elif value not in self.registers:
            stage = (
                self._stage(value)
                if value in self.instructions
                else self._load(value)
            )
            self.registers[value] = (self.head is not None) + len(self.stages)
            self.stages.append(stage)

    def _stage(self, value: int) -> Stage:
        instruction = self.instructions[value]
        data, parameters = split(instruction)
        for source in sorted(data, key=lambda v: v not in self.accumulated):
            self.visit(source)
        sources = tuple(self.registers[source] for source in data)
        return Stage(
            instruction.name,
            sources,
            -1,
            parameters,
            stage_attributes(self.form, value, instruction),
        )

    def _load(self, value: int) -> Stage:
        self.operands.append(value)
        return Stage(LOAD, operand=len(self.operands) - 1)
