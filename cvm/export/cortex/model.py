"""A program as a graph of Cortex's: the input, one instruction after the other, and the heads."""

from __future__ import annotations

from dataclasses import dataclass

from cvm.errors import BadInput
from cvm.export.cortex.graph import CortexGraph, CortexValue, Refused, bits
from cvm.export.cortex.instruction import CortexInstruction, narrowed, shape_of
from cvm.export.cortex.movement import reshaped
from cvm.export.cortex.table import TABLE
from cvm.export.refusals import Refusal, refuse
from cvm.program import Instruction, IntArray
from cvm.proof.validate import Proven

ADVICE = "Most convolutional networks fit if converted with --scales shift --activation-bits 7"


@dataclass(frozen=True)
class Model:
    """The nodes, and which of them are the answer."""

    graph: CortexGraph
    heads: tuple[int, ...]


def model_of(form: Proven) -> Model:
    """All instructions; raise `BadInput` naming each that cannot be expressed."""
    program = form.program
    if len(program.inputs) != 1:
        raise BadInput(
            f"the program has {len(program.inputs)} inputs; the target cortex takes programs of one"
        )
    (input_,) = program.inputs
    graph = CortexGraph()
    values: dict[int, CortexValue | IntArray] = dict(
        enumerate(program.constants, program.first_constant)
    )
    try:
        values[0] = graph.data(shape_of(input_.type), (input_.lo, input_.hi))
    except Refused as problem:
        raise BadInput(
            f"the target cortex cannot take the input: {problem}"
        ) from None
    refusals = []
    for number, instruction in enumerate(
        program.instructions, program.first_instruction
    ):
        try:
            result = _written(form, graph, values, instruction, number)
        except Refused as problem:
            refusals.append(Refusal(instruction.name, number, str(problem)))
            result = _placeholder(form, number)
        values[number] = result
    refuse("cortex", refusals, ADVICE)
    return Model(graph, _heads(form, graph, values))


def _written(
    form: Proven,
    graph: CortexGraph,
    values: dict[int, CortexValue | IntArray],
    instruction: Instruction,
    number: int,
) -> CortexValue:
    if instruction.name not in TABLE:
        raise Refused("Cortex has no operator for it")
    cortex_instruction = CortexInstruction(
        graph,
        tuple(values[value] for value in instruction.operands),
        tuple(form.types[value] for value in instruction.operands),
        form.types[number],
        form.intervals[number],
        instruction.attributes,
    )
    return narrowed(
        TABLE[instruction.name](cortex_instruction), form.intervals[number]
    )


def _placeholder(form: Proven, number: int) -> CortexValue:
    """A stand-in for a value that cannot be written, so that its readers are judged by themselves."""
    interval = form.intervals[number]
    shape = shape_of(form.types[number])
    return CortexValue(0, shape, min(bits(interval), 32), interval)


def _heads(
    form: Proven, graph: CortexGraph, values: dict[int, CortexValue | IntArray]
) -> tuple[int, ...]:
    """The nodes of the outputs; each of several outputs is one row, because the runtime joins them row by row."""
    outputs = form.program.outputs
    heads = []
    for output in outputs:
        value = values[output.value]
        assert isinstance(value, CortexValue)
        value = graph.tight(value, bits(value.interval))
        if len(outputs) > 1:
            elements = form.types[output.value].elements
            value = reshaped(graph, value, (1, elements))
        heads.append(value.node)
    return tuple(heads)
