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
    graph = TosaBuilder({entry.name for entry in program.inputs})
    values = {
        number: graph.value(entry.name, ELEMENTS[entry.type.dtype], entry.type.shape)
        for number, entry in enumerate(program.inputs)
    }  # fmt: skip
    constants = dict(enumerate(program.constants, program.first_constant))
    for number, entry in enumerate(
        program.instructions, program.first_instruction
    ):
        instruction = TosaInstruction(
            graph,
            entry.operands,
            tuple(form.types[value] for value in entry.operands),
            tuple(form.intervals[value] for value in entry.operands),
            form.types[number],
            entry.attributes,
            values,
            constants,
        )
        values[number] = TABLE[entry.name](instruction)
    outputs = tuple(
        _output(graph, entry.name, values[entry.value])
        for entry in program.outputs
    )
    return TosaGraph(
        tuple(graph.tensors),
        tuple(graph.shapes.values()),
        tuple(graph.operators),
        tuple(entry.name for entry in program.inputs),
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
