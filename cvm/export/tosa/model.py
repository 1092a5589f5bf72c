"""A program as a TOSA graph, with the names of its inputs and outputs."""

from __future__ import annotations

from cvm.export.tosa.builder import ELEMENTS, TosaBuilder, TosaValue
from cvm.export.tosa.instruction import TosaInstruction
from cvm.export.tosa.table import TABLE
from cvm.proof.validate import Proven
from cvm.tosa.graph import TosaGraph


def graph_of(form: Proven) -> TosaGraph:
    """All instructions in order."""
    program = form.program
    graph = TosaBuilder({input_.name for input_ in program.inputs})
    values = {
        number: graph.value(input_.name, ELEMENTS[input_.type.dtype], input_.type.shape)
        for number, input_ in enumerate(program.inputs)
    }  # fmt: skip
    constants = dict(enumerate(program.constants, program.first_constant))
    for number, instruction in enumerate(
        program.instructions, program.first_instruction
    ):
        tosa_instruction = TosaInstruction(
            graph,
            instruction.operands,
            tuple(form.types[value] for value in instruction.operands),
            tuple(form.intervals[value] for value in instruction.operands),
            form.types[number],
            instruction.attributes,
            values,
            constants,
        )
        values[number] = TABLE[instruction.name](tosa_instruction)
    outputs = tuple(
        _output(graph, output.name, values[output.value])
        for output in program.outputs
    )
    return TosaGraph(
        tuple(graph.tensors),
        tuple(graph.shapes.values()),
        tuple(graph.operators),
        tuple(input_.name for input_ in program.inputs),
        outputs,
    )


def _output(graph: TosaBuilder, name: str, value: TosaValue) -> str:
    """A tensor with the output's name, or the next one that is free: inputs and outputs are named apart in a program."""
    free, number = name, 0
    while free in graph.taken:
        number += 1
        free = f"{name}_{number}"
    named = graph.value(free, value.element, value.shape)
    graph.connect("IDENTITY", [value], named)
    return free
