"""Many elements to one: along an axis, in windows of an image, and sorting."""

from __future__ import annotations

import numpy as np

from cvm.export.onnx.arithmetic import (
    Writer,
    saturated,
    shift_half_up,
    with_kernel,
)
from cvm.export.onnx.graph import Graph
from cvm.export.onnx.step import Step
from cvm.export.onnx.windows import padded, windows
from cvm.program import IntArray


def along(operator: str) -> Writer:
    """ReduceSum, ReduceMax or ReduceMin in 32 bits; partial sums fit by proof."""

    def write(step: Step) -> str:
        axes = step.graph.integers([step.integer("axis")])
        return step.graph.node(operator, step.operand(0, "i32"), axes)

    return write


def argmax(step: Step) -> str:
    """The first among equals, as ONNX has it, too."""
    return step.graph.node(
        "ArgMax",
        step.operand(0, "i32"),
        dtype="i64",
        axis=step.integer("axis"),
        keepdims=0,
    )


def argsort(step: Step) -> str:
    """TopK of the whole row, in which equals keep the order of their indices."""
    count = step.graph.integers([step.result.shape[-1]])
    attributes = {"axis": -1, "largest": step.integer("descending")}
    operands = (step.operand(0, "i32"), count)
    names = step.graph.results("TopK", operands, ("i32", "i64"), attributes)
    return names[1]


def max_pool2d(step: Step) -> str:
    """A place beside x reads the nearest one in x, which is in the window too."""
    graph, x = step.graph, with_kernel(step, 0)
    for axis in (0, 1):
        places, before = _places(step, axis)
        most = step.types[0].shape[1 + axis] - 1
        inside = np.clip(places - before, 0, most)
        x = _reduced(graph, "ReduceMax", x, inside, axis)
    return x


def avg_pool2d(step: Step) -> str:
    """The sum fits 32 bits; the mean is its product with a reciprocal of 31 bits, shifted."""
    graph, x = step.graph, step.operand(0, "i32")
    zero_point = step.integer("input_zp")
    if zero_point:
        x = graph.node("Sub", x, graph.number(zero_point, "i32"))
    top, bottom, left, right = step.integers("pad")
    x = padded(graph, x, (0, top, left, 0, 0, bottom, right, 0), 0)
    for axis in (0, 1):
        x = _reduced(graph, "ReduceSum", x, _places(step, axis)[0], axis)
    counts = _counts(step)
    bits = np.searchsorted(2 ** np.arange(25), counts)
    multiplier = ((2**30 + 1) << bits) // counts
    wide = graph.cast(x, "i64")
    product = graph.node("Mul", wide, graph.constant(multiplier))
    mean = shift_half_up(graph, product, 30 + bits)
    moved = graph.node(
        "Add", mean, graph.number(step.integer("output_zp"), "i64")
    )
    return saturated(graph, moved, step.result.dtype)


def _places(step: Step, axis: int) -> tuple[IntArray, int]:
    """The indices of each window's places along an axis of padded x, and how many places stand before x."""
    before, after = step.integers("pad")[2 * axis : 2 * axis + 2]
    size = step.types[0].shape[1 + axis] + before + after
    kernel, stride = (
        step.integers("kernel")[axis],
        step.integers("stride")[axis],
    )
    return windows(size, kernel, stride), before


def _counts(step: Step) -> IntArray:
    """How many places of each window are in x."""
    found = []
    for axis in (0, 1):
        places, before = _places(step, axis)
        places = places - before
        inside = (places >= 0) & (places < step.types[0].shape[1 + axis])
        found.append(inside.sum(axis=1))
    counts: IntArray = np.multiply.outer(*found).reshape(
        1, len(found[0]), len(found[1]), 1
    )
    return counts.astype(np.int64)


def _reduced(
    graph: Graph, operator: str, x: str, places: IntArray, axis: int
) -> str:
    """Gather the places of each window along an axis, and combine them."""
    gathered = graph.node("Gather", x, graph.integers(places), axis=1 + axis)
    axes = graph.integers([2 + axis])
    return graph.node(operator, gathered, axes, keepdims=0)
