"""Elements in other places, of any dtype, and images sampled at other places."""

from __future__ import annotations

import numpy as np

from cvm.export.neighbours import neighbours
from cvm.export.onnx.graph import OnnxGraph
from cvm.export.onnx.instruction import OnnxInstruction
from cvm.export.onnx.windows import padded
from cvm.program import IntArray

TO_THE_FIRST = -(2**63)  # the end of a Slice that goes backwards


def reshape(instruction: OnnxInstruction) -> str:
    """The same elements in row-major order."""
    return instruction.graph.reshape(
        instruction.operand(0), instruction.result.shape
    )


def transpose(instruction: OnnxInstruction) -> str:
    """ONNX's Transpose has the same `perm`."""
    if not instruction.result.rank:
        return instruction.operand(0)
    perm = instruction.integers("perm")
    return instruction.graph.node(
        "Transpose", instruction.operand(0), perm=perm
    )


def concat(instruction: OnnxInstruction) -> str:
    """The operands one after the other."""
    operands = [
        instruction.operand(index) for index in range(len(instruction.operands))
    ]
    return instruction.graph.node(
        "Concat", *operands, axis=instruction.integer("axis")
    )


def slice_(instruction: OnnxInstruction) -> str:
    """size[i] elements from start[i] on."""
    if not instruction.result.rank:
        return instruction.operand(0)
    start = np.array(instruction.integers("start"))
    stops = start + np.array(instruction.integers("size"))
    graph = instruction.graph
    between = graph.integers(start), graph.integers(stops)
    return graph.node("Slice", instruction.operand(0), *between)


def pad(instruction: OnnxInstruction) -> str:
    """ONNX lists what stands before every axis first."""
    pads = instruction.integers("pads")
    onnx_pads = pads[::2] + pads[1::2]
    return padded(
        instruction.graph,
        instruction.operand(0),
        onnx_pads,
        instruction.integer("value"),
    )


def tile(instruction: OnnxInstruction) -> str:
    """x multiples[i] times along each axis."""
    if not instruction.result.rank:
        return instruction.operand(0)
    multiples = instruction.graph.integers(instruction.integers("multiples"))
    return instruction.graph.node("Tile", instruction.operand(0), multiples)


def reverse(instruction: OnnxInstruction) -> str:
    """A Slice that goes backwards."""
    places = [-1], [TO_THE_FIRST], [instruction.integer("axis")], [-1]
    listed = [instruction.graph.integers(values) for values in places]
    return instruction.graph.node("Slice", instruction.operand(0), *listed)


def gather(instruction: OnnxInstruction) -> str:
    """GatherND with one batch axis: rows of values[n] by indices[n]."""
    graph = instruction.graph
    shape = (*instruction.types[1].shape, 1)
    indices = graph.reshape(instruction.operand(1, "i64"), shape)
    return graph.node("GatherND", instruction.operand(0), indices, batch_dims=1)


def resize(instruction: OnnxInstruction) -> str:
    """One axis after the other; bilinear sums fit 32 bits, for a part of the weights gives no more than all."""
    dtype = "i32" if instruction.word("mode") == "bilinear" else ""
    x = instruction.operand(0, dtype)
    for axis in (0, 1):
        x = _resized(instruction, x, axis)
    return x


def _resized(instruction: OnnxInstruction, x: str, axis: int) -> str:
    """One axis: each place from its two neighbours."""
    graph = instruction.graph
    beside = neighbours(
        instruction, instruction.types[0], instruction.result, axis
    )
    if instruction.word("mode") == "nearest":
        return _taken(graph, x, beside.nearest, axis)
    products = [
        graph.node(
            "Mul", _taken(graph, x, places, axis), graph.constant(weights)
        )
        for places, weights in beside.weighted(axis)
    ]
    return graph.node("Add", *products)


def _taken(graph: OnnxGraph, x: str, places: IntArray, axis: int) -> str:
    return graph.node("Gather", x, graph.integers(places), axis=1 + axis)
