"""A program as one ONNX model: inputs and outputs of the same names, one instruction after the other in between."""

from __future__ import annotations

import onnx
from onnx import helper

from cvm import __version__
from cvm.errors import BadInput
from cvm.export.onnx.graph import IR_VERSION, OPSET, OnnxGraph, element_type
from cvm.export.onnx.instruction import OnnxInstruction
from cvm.export.onnx.table import TABLE
from cvm.file.format import program_id
from cvm.program import Program, TensorType
from cvm.proof.validate import Proven


def model_of(form: Proven) -> onnx.ModelProto:
    """All instructions, then a node for each output that gives it its name."""
    program = form.program
    _require_distinct_names(program)
    ports = {input_.name for input_ in program.inputs}
    ports |= {output.name for output in program.outputs}
    graph = OnnxGraph(ports)
    names: dict[int, str] = {}
    constants = dict(enumerate(program.constants, program.first_constant))
    for number, port in enumerate(program.inputs):
        names[number] = port.name
        graph.dtypes[port.name] = port.type.dtype
    for number, instruction in enumerate(
        program.instructions, program.first_instruction
    ):
        onnx_instruction = OnnxInstruction(
            graph,
            instruction.operands,
            tuple(form.types[value] for value in instruction.operands),
            tuple(form.intervals[value] for value in instruction.operands),
            form.types[number],
            instruction.attributes,
            names,
            constants,
        )
        name = TABLE[instruction.name](onnx_instruction)
        names[number] = graph.cast(name, onnx_instruction.result.dtype)
    outputs = []
    for output in program.outputs:
        operands = [names[output.value]]
        graph.nodes.append(
            helper.make_node("Identity", operands, [output.name])
        )
        outputs.append(_port(output.name, form.types[output.value]))
    return helper.make_model(
        helper.make_graph(
            graph.nodes,
            program_id(program),
            [_port(input_.name, input_.type) for input_ in program.inputs],
            outputs,
            graph.constants,
        ),
        opset_imports=[helper.make_opsetid("", OPSET)],
        ir_version=IR_VERSION,
        producer_name="cvm",
        producer_version=__version__,
    )


def _port(name: str, type_: TensorType) -> onnx.ValueInfoProto:
    """The declared type; helper's function of this name lets a shape be a list."""
    return helper.make_tensor_value_info(
        name, element_type(type_.dtype), list(type_.shape)
    )


def _require_distinct_names(program: Program) -> None:
    """Raise `BadInput` if an input and an output share a name: in ONNX they would be one value."""
    inputs = {port.name for port in program.inputs}
    shared = [port.name for port in program.outputs if port.name in inputs]
    if shared:
        raise BadInput(
            f"the target onnx needs other names for outputs than for inputs; both have {', '.join(shared)}"
        )
