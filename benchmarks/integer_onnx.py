"""A program of shift scales as ONNX whose floats are integers, for provers that read ONNX and compute in fixed point."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from cvm.program import DTYPE_RANGES, Instruction
from cvm.proof.validate import Proven

UNIT = 30  # bits of the multiplier 2^30, which is a factor of 1


class IntegerGraph:
    """Nodes of ONNX that compute a program's integers as floats."""

    def __init__(self, form: Proven) -> None:
        self.form, self.program = form, form.program
        self.nodes: list[Any] = []
        self.arrays: dict[str, Any] = {}
        first = self.program.first_constant
        for number, array in enumerate(self.program.constants, first):
            self.constant(f"v{number}", array)
        for place, instruction in enumerate(self.program.instructions):
            WRITERS[instruction.name](
                self, instruction, self.program.first_instruction + place
            )

    def model(self) -> onnx.ModelProto:
        """The graph, of one sample."""
        (x,), (y,) = self.program.inputs, self.program.outputs
        ports = [
            helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)
            for name, shape in (
                ("v0", x.type.shape),
                (f"v{y.value}", self.form.types[y.value].shape),
            )
        ]
        read = {name for node in self.nodes for name in node.input}
        stored = [
            numpy_helper.from_array(array, name)
            for name, array in self.arrays.items()
            if name in read
        ]
        graph = helper.make_graph(self.nodes, "g", ports[:1], ports[1:], stored)
        opset = [helper.make_opsetid("", 13)]
        return helper.make_model(graph, opset_imports=opset, ir_version=8)

    def constant(self, name: str, array: Any, dtype: Any = np.float32) -> str:
        """A stored array."""
        self.arrays[name] = np.asarray(array, dtype)
        return name

    def node(
        self, kind: str, operands: list[str], name: str, **attributes: Any
    ) -> str:
        """A node with one result."""
        self.nodes.append(
            helper.make_node(kind, operands, [name], **attributes)
        )
        return name

    def known(self, value: int) -> Any:
        """The integers of a constant."""
        return self.program.constants[value - self.program.first_constant]


def _dense(graph: IntegerGraph, instruction: Instruction, number: int) -> None:
    x, w, b = instruction.operands
    weights = graph.known(w).astype(np.int64)
    bias = graph.known(b) - int(
        instruction.attributes["input_zp"]
    ) * weights.sum(1)
    names = [
        graph.constant(f"w{number}", weights.T),
        graph.constant(f"b{number}", bias),
    ]
    graph.node("Gemm", [f"v{x}", *names], f"v{number}")


def _rescale(
    graph: IntegerGraph, instruction: Instruction, number: int
) -> None:
    """floor(x * 2^-k + 1/2), clipped."""
    multipliers, shifts = (
        graph.known(value) for value in instruction.operands[1:]
    )
    if (multipliers != 1 << UNIT).any():
        raise ValueError("a multiplier is no power of two: --scales shift")
    x = f"v{instruction.operands[0]}"
    factor = graph.constant(f"m{number}", 0.5 ** (shifts - UNIT).astype(float))
    half = graph.constant(f"h{number}", 0.5)
    scaled = graph.node("Mul", [x, factor], f"p{number}")
    moved = graph.node("Add", [scaled, half], f"q{number}")
    rounded = graph.node("Floor", [moved], f"f{number}")
    zero_point = int(instruction.attributes["output_zp"])
    if zero_point:
        name = graph.constant(f"z{number}", float(zero_point))
        rounded = graph.node("Add", [rounded, name], f"g{number}")
    limits = DTYPE_RANGES[graph.form.types[number].dtype]
    bounds = [
        graph.constant(f"{side}{number}", end)
        for side, end in zip(("lo", "hi"), limits, strict=True)
    ]
    graph.node("Clip", [rounded, *bounds], f"v{number}")


def _reshape(
    graph: IntegerGraph, instruction: Instruction, number: int
) -> None:
    shape = graph.form.types[number].shape
    if f"v{instruction.operands[0]}" in graph.arrays:  # of a constant
        array = graph.arrays[f"v{instruction.operands[0]}"].reshape(shape)
        graph.constant(f"v{number}", array)
        return
    name = graph.constant(f"s{number}", shape, np.int64)
    graph.node("Reshape", [f"v{instruction.operands[0]}", name], f"v{number}")


def _gather(graph: IntegerGraph, instruction: Instruction, number: int) -> None:
    """Places of the one row of a batch."""
    x, places = (f"v{value}" for value in instruction.operands)
    name = f"i{number}"
    graph.constant(name, graph.arrays[places].reshape(-1), np.int64)
    graph.node("Gather", [x, name], f"v{number}", axis=1)


def _greater(
    graph: IntegerGraph, instruction: Instruction, number: int
) -> None:
    operands = [f"v{value}" for value in instruction.operands]
    name = graph.node("Greater", operands, f"b{number}")
    graph.node("Cast", [name], f"v{number}", to=TensorProto.FLOAT)


def _not(graph: IntegerGraph, instruction: Instruction, number: int) -> None:
    one = graph.constant(f"o{number}", 1)
    graph.node("Sub", [one, f"v{instruction.operands[0]}"], f"v{number}")


def _same(graph: IntegerGraph, instruction: Instruction, number: int) -> None:
    graph.node("Identity", [f"v{instruction.operands[0]}"], f"v{number}")


WRITERS: dict[str, Callable[[IntegerGraph, Instruction, int], None]] = {
    "dense": _dense,
    "rescale": _rescale,
    "reshape": _reshape,
    "gather": _gather,
    "greater": _greater,
    "logical_not": _not,
    "cast": _same,
}


def integer_onnx(form: Proven) -> onnx.ModelProto:
    """The program as a graph; KeyError names an instruction that has no nodes here."""
    return IntegerGraph(form).model()
