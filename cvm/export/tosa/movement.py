"""Elements in other places, of any dtype, and images sampled at other places."""

from __future__ import annotations

from math import prod

import numpy as np

from cvm.export.neighbours import neighbours
from cvm.export.tosa.builder import TosaBuilder, TosaValue
from cvm.export.tosa.instruction import TosaInstruction, Writer
from cvm.program import IntArray
from cvm.tosa.schema import RESIZE_MODES


def reshape(instruction: TosaInstruction) -> TosaValue:
    """The same elements in row-major order."""
    shape = instruction.result.shape
    return instruction.graph.reshape(instruction.operand(0), shape)


def transpose(instruction: TosaInstruction) -> TosaValue:
    """TOSA's has the same `perm`."""
    if not instruction.result.rank:
        return instruction.operand(0)
    perms = instruction.integers("perm")
    return instruction.write("TRANSPOSE", instruction.operand(0), perms=perms)


def along(operator: str) -> Writer:
    """TOSA's with the same `axis`."""

    def write(instruction: TosaInstruction) -> TosaValue:
        axis = instruction.integer("axis")
        return instruction.write(operator, *instruction.all, axis=axis)

    return write


def with_shapes(operator: str, *names: str) -> Writer:
    """TOSA's, with lists of sizes as operands; there is nothing to do without an axis."""

    def write(instruction: TosaInstruction) -> TosaValue:
        if not instruction.result.rank:
            return instruction.operand(0)
        lists = [
            instruction.graph.sizes(instruction.integers(name))
            for name in names
        ]
        return instruction.write(operator, instruction.operand(0), *lists)

    return write


def pad(instruction: TosaInstruction) -> TosaValue:
    """The value is a constant of one element; of a byte without sign, the byte with the same bits."""
    graph, x = instruction.graph, instruction.operand(0)
    if not instruction.result.rank:
        return x
    value = instruction.integer("value")
    if instruction.result.dtype == "u8" and value > 127:
        value -= 256
    pads = graph.sizes(instruction.integers("pads"))
    return instruction.write("PAD", x, pads, graph.one(value, x.element))


def gather(instruction: TosaInstruction) -> TosaValue:
    """TOSA's; booleans go through bytes."""
    values, indices = instruction.all
    return gathered(instruction.graph, values, indices)


def gathered(
    graph: TosaBuilder, values: TosaValue, indices: TosaValue
) -> TosaValue:
    """values[n, indices[n, w], c]."""
    gatherable = (
        graph.cast(values, "INT8") if values.element == "BOOL" else values
    )
    shape = (*indices.shape, values.shape[2])
    operands = [gatherable, indices]
    result = graph.operation("GATHER", operands, gatherable.element, shape)
    return graph.cast(result, values.element)


def resize(instruction: TosaInstruction) -> TosaValue:
    """TOSA's of bytes; others one axis after the other: a part of the weights gives no more than all, so 32 bits hold the sums."""
    graph, x = instruction.graph, instruction.operand(0)
    mode = instruction.word("mode")
    if x.element == "INT8":
        lists = [
            graph.sizes(instruction.integers(name))
            for name in ("scale", "offset", "border")
        ]
        number = RESIZE_MODES.index(mode)
        return instruction.write("RESIZE", x, *lists, mode=number)
    if mode == "bilinear":
        x = graph.cast(x, "INT32")
    for axis in (0, 1):
        x = _resized(instruction, x, axis)
    return x


def _resized(
    instruction: TosaInstruction, x: TosaValue, axis: int
) -> TosaValue:
    """One axis: each place from its two neighbours."""
    graph = instruction.graph
    beside = neighbours(
        instruction, instruction.types[0], instruction.result, axis
    )
    if instruction.word("mode") == "nearest":
        return taken(graph, x, beside.nearest, 1 + axis)
    products = []
    for places, weights in beside.weighted(axis):
        neighbour = taken(graph, x, places, 1 + axis)
        aligned = weights.reshape((1,) * (4 - weights.ndim) + weights.shape)
        factors = graph.constant(aligned, "INT32")
        operands = [neighbour, factors, graph.one(0, "INT8")]
        products.append(
            graph.operation("MUL", operands, "INT32", neighbour.shape)
        )
    return graph.operation("ADD", products, "INT32", products[0].shape)


def taken(
    graph: TosaBuilder, x: TosaValue, places: IntArray, axis: int
) -> TosaValue:
    """The elements of x at these places of an axis."""
    rows, rest = prod(x.shape[:axis]), prod(x.shape[axis + 1 :])
    flat = graph.reshape(x, (rows, x.shape[axis], rest))
    indices = np.broadcast_to(places, (rows, len(places)))
    result = gathered(graph, flat, graph.constant(indices, "INT32"))
    shape = (*x.shape[:axis], len(places), *x.shape[axis + 1 :])
    return graph.reshape(result, shape)
