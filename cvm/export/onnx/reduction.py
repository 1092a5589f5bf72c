"""Many elements to one: along an axis, in windows of an image, and sorting."""

from __future__ import annotations

import numpy as np

from cvm.export.onnx.arithmetic import (
    Writer,
    saturated,
    shift_half_up,
    with_kernel,
)
from cvm.export.onnx.graph import OnnxGraph
from cvm.export.onnx.instruction import OnnxInstruction
from cvm.export.onnx.windows import padded, windows
from cvm.program import IntArray


def along(operator: str) -> Writer:
    """ReduceSum, ReduceMax or ReduceMin in 32 bits; partial sums fit by proof."""

    def write(instruction: OnnxInstruction) -> str:
        axes = instruction.graph.integers([instruction.integer("axis")])
        return instruction.graph.node(
            operator, instruction.operand(0, "i32"), axes
        )

    return write


def argmax(instruction: OnnxInstruction) -> str:
    """The first among equals, as ONNX has it, too."""
    return instruction.graph.node(
        "ArgMax",
        instruction.operand(0, "i32"),
        dtype="i64",
        axis=instruction.integer("axis"),
        keepdims=0,
    )


def argsort(instruction: OnnxInstruction) -> str:
    """TopK of the whole row, in which equals keep the order of their indices."""
    count = instruction.graph.integers([instruction.result.shape[-1]])
    attributes = {"axis": -1, "largest": instruction.integer("descending")}
    operands = (instruction.operand(0, "i32"), count)
    names = instruction.graph.results(
        "TopK", operands, ("i32", "i64"), attributes
    )
    return names[1]


def max_pool2d(instruction: OnnxInstruction) -> str:
    """A place beside x reads the nearest one in x, which is in the window too."""
    graph, x = instruction.graph, with_kernel(instruction, 0)
    for axis in (0, 1):
        places, before = _places(instruction, axis)
        most = instruction.types[0].shape[1 + axis] - 1
        inside = np.clip(places - before, 0, most)
        x = _reduced(graph, "ReduceMax", x, inside, axis)
    return x


def avg_pool2d(instruction: OnnxInstruction) -> str:
    """The sum fits 32 bits; the mean is its product with a reciprocal of 31 bits, shifted."""
    graph, x = instruction.graph, instruction.operand(0, "i32")
    zero_point = instruction.integer("input_zp")
    if zero_point:
        x = graph.node("Sub", x, graph.number(zero_point, "i32"))
    top, bottom, left, right = instruction.integers("pad")
    x = padded(graph, x, (0, top, left, 0, 0, bottom, right, 0), 0)
    for axis in (0, 1):
        x = _reduced(graph, "ReduceSum", x, _places(instruction, axis)[0], axis)
    counts = _counts(instruction)
    bits = np.searchsorted(2 ** np.arange(25), counts)
    multiplier = ((2**30 + 1) << bits) // counts
    wide = graph.cast(x, "i64")
    product = graph.node("Mul", wide, graph.constant(multiplier))
    mean = shift_half_up(graph, product, 30 + bits)
    moved = graph.node(
        "Add", mean, graph.number(instruction.integer("output_zp"), "i64")
    )
    return saturated(graph, moved, instruction.result.dtype)


def _places(instruction: OnnxInstruction, axis: int) -> tuple[IntArray, int]:
    """The indices of each window's places along an axis of padded x, and how many places stand before x."""
    before, after = instruction.integers("pad")[2 * axis : 2 * axis + 2]
    size = instruction.types[0].shape[1 + axis] + before + after
    kernel = instruction.integers("kernel")[axis]
    stride = instruction.integers("stride")[axis]
    return windows(size, kernel, stride), before


def _counts(instruction: OnnxInstruction) -> IntArray:
    """How many places of each window are in x."""
    along = []
    for axis in (0, 1):
        places, before = _places(instruction, axis)
        places = places - before
        inside = (places >= 0) & (places < instruction.types[0].shape[1 + axis])
        along.append(inside.sum(axis=1))
    counts: IntArray = np.multiply.outer(*along).reshape(
        1, len(along[0]), len(along[1]), 1
    )
    return counts.astype(np.int64)


def _reduced(
    graph: OnnxGraph, operator: str, x: str, places: IntArray, axis: int
) -> str:
    """Gather the places of each window along an axis, and combine them."""
    gathered = graph.node("Gather", x, graph.integers(places), axis=1 + axis)
    axes = graph.integers([2 + axis])
    return graph.node(operator, gathered, axes, keepdims=0)
