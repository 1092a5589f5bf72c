"""Elements in other places, of any dtype, and images sampled at other places."""

from __future__ import annotations

import numpy as np

from cvm.export.onnx.graph import Graph
from cvm.export.onnx.step import Step
from cvm.export.onnx.windows import padded
from cvm.program import IntArray

TO_THE_FIRST = -(2**63)  # the end of a Slice that goes backwards


def reshape(step: Step) -> str:
    """The same elements in row-major order."""
    return step.graph.reshape(step.operand(0), step.result.shape)


def transpose(step: Step) -> str:
    """ONNX's Transpose has the same `perm`."""
    if not step.result.rank:
        return step.operand(0)
    perm = step.integers("perm")
    return step.graph.node("Transpose", step.operand(0), perm=perm)


def concat(step: Step) -> str:
    """The operands one after the other."""
    operands = [step.operand(index) for index in range(len(step.operands))]
    return step.graph.node("Concat", *operands, axis=step.integer("axis"))


def slice_(step: Step) -> str:
    """size[i] elements from start[i] on."""
    if not step.result.rank:
        return step.operand(0)
    start = np.array(step.integers("start"))
    ends = start + np.array(step.integers("size"))
    graph = step.graph
    between = graph.integers(start), graph.integers(ends)
    return graph.node("Slice", step.operand(0), *between)


def pad(step: Step) -> str:
    """ONNX lists what stands before every axis first."""
    pads = step.integers("pads")
    both = pads[::2] + pads[1::2]
    return padded(step.graph, step.operand(0), both, step.integer("value"))


def tile(step: Step) -> str:
    """x multiples[i] times along each axis."""
    if not step.result.rank:
        return step.operand(0)
    multiples = step.graph.integers(step.integers("multiples"))
    return step.graph.node("Tile", step.operand(0), multiples)


def reverse(step: Step) -> str:
    """A Slice that goes backwards."""
    places = [-1], [TO_THE_FIRST], [step.integer("axis")], [-1]
    listed = [step.graph.integers(values) for values in places]
    return step.graph.node("Slice", step.operand(0), *listed)


def gather(step: Step) -> str:
    """GatherND with one batch axis: rows of values[n] by indices[n]."""
    graph = step.graph
    shape = (*step.types[1].shape, 1)
    indices = graph.reshape(step.operand(1, "i64"), shape)
    return graph.node("GatherND", step.operand(0), indices, batch_dims=1)


def resize(step: Step) -> str:
    """One axis after the other; bilinear sums fit 32 bits, for a part of the weights gives no more than all."""
    dtype = "i32" if step.word("mode") == "bilinear" else ""
    x = step.operand(0, dtype)
    for axis in (0, 1):
        x = _resized(step, x, axis)
    return x


def _resized(step: Step, x: str, axis: int) -> str:
    """One axis: place i stands at (i d + offset) / n, between two neighbours."""
    graph, size = step.graph, step.types[0].shape[1 + axis]
    n, d = step.integers("scale")[2 * axis : 2 * axis + 2]
    count = step.result.shape[1 + axis]
    positions = np.arange(count) * d + step.integers("offset")[axis]
    place, remainder = np.divmod(positions, n)
    before, after = np.maximum(place, 0), np.minimum(place + 1, size - 1)
    if step.word("mode") == "nearest":
        nearer = np.where(2 * remainder >= n, after, before)
        return _taken(graph, x, nearer, axis)
    weight = remainder.reshape(-1, *[1] * (2 - axis)).astype(np.int32)
    parts = [
        graph.node("Mul", _taken(graph, x, places, axis), graph.constant(by))
        for places, by in ((before, n - weight), (after, weight))
    ]
    return graph.node("Add", *parts)


def _taken(graph: Graph, x: str, places: IntArray, axis: int) -> str:
    return graph.node("Gather", x, graph.integers(places), axis=1 + axis)
