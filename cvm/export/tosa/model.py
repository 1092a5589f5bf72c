"""A program as a TOSA graph, with the names of its inputs and outputs."""

from __future__ import annotations

from cvm.export.refusals import Refusal, refuse
from cvm.export.tosa import arithmetic
from cvm.export.tosa.builder import ELEMENTS, TosaBuilder, TosaValue
from cvm.export.tosa.instruction import TosaInstruction
from cvm.export.tosa.table import TABLE
from cvm.proof.validate import Proven
from cvm.tosa.graph import TosaGraph

LEAST = -(2**31)
OUT_OF_RANGE = (
    "its x leaves -2^(shift-1)..2^(shift-1)-1, all that TOSA scales to 32 bits"
)
ADVICE = "Narrower intervals of the inputs may help."
TIE = "at shift 63 the product of the least integers, with the half, leaves 64 bits"


def graph_of(form: Proven) -> TosaGraph:
    """All instructions in order; raises `BadInput` that names those whose intervals TOSA does not take."""
    program = form.program
    graph = TosaBuilder({item.name for item in program.inputs})
    values = {
        number: graph.value(item.name, ELEMENTS[item.type.dtype], item.type.shape)
        for number, item in enumerate(program.inputs)
    }  # fmt: skip
    refusals = []
    constants = dict(enumerate(program.constants, program.first_constant))
    for number, item in enumerate(
        program.instructions, program.first_instruction
    ):
        instruction = TosaInstruction(
            graph,
            item.operands,
            tuple(form.types[value] for value in item.operands),
            tuple(form.intervals[value] for value in item.operands),
            form.types[number],
            item.attributes,
            values,
            constants,
        )
        reason = _reason(item.name, instruction)
        if reason:
            refusals.append(Refusal(item.name, number, reason))
        values[number] = TABLE[item.name](instruction)
    refuse("tosa", refusals, ADVICE)
    outputs = tuple(
        _output(graph, item.name, values[item.value])
        for item in program.outputs
    )
    return TosaGraph(
        tuple(graph.tensors),
        tuple(graph.shapes.values()),
        tuple(graph.operators),
        tuple(item.name for item in program.inputs),
        outputs,
    )


def _reason(name: str, instruction: TosaInstruction) -> str:
    """Why TOSA has no operators for these intervals, if it has none."""
    if name == "rescale" and instruction.element == "INT32":
        return "" if arithmetic.fits(instruction) else OUT_OF_RANGE
    if name == "mul" and instruction.integer("shift") == 63:
        least = [low for low, _ in instruction.intervals]
        return TIE if least == [LEAST, LEAST] else ""
    return ""


def _output(graph: TosaBuilder, name: str, value: TosaValue) -> str:
    """A tensor with the output's name, or the next one that is free: inputs and outputs are named apart in a program."""
    free, number = name, 0
    while free in graph.taken:
        number += 1
        free = f"{name}_{number}"
    named = graph.value(free, value.element, value.shape)
    graph.connect("IDENTITY", [value], named)
    return free
