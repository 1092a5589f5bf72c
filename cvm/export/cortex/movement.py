"""Elements that move without change, and the nearest and the bilinear resize, which read them by index."""

from __future__ import annotations

from math import prod

import numpy as np

from cvm.export.cortex import arithmetic as exact
from cvm.export.cortex.graph import (
    MAX_ATTRIBUTE,
    CortexGraph,
    CortexValue,
    Refused,
)
from cvm.export.cortex.instruction import CortexInstruction
from cvm.program import IntArray


def reshaped(
    graph: CortexGraph, x: CortexValue, shape: tuple[int, ...]
) -> CortexValue:
    """The same elements in another shape."""
    if x.shape == shape:
        return x
    return graph.node(
        "reshape", (x,), x.precision, x.interval, shape, shape=shape
    )


def transposed(
    graph: CortexGraph, x: CortexValue, order: tuple[int, ...]
) -> CortexValue:
    """Axis i of the result is axis order[i]; a transpose of a transpose is one, or none."""
    node = graph.nodes[x.node]
    if node.operator == "transpose":
        first = tuple(map(int, node.attributes["axes"].strip("(),").split(",")))
        source = graph.nodes[node.inputs[0]]
        inner = CortexValue(
            node.inputs[0], source.shape, source.precision, x.interval
        )
        return transposed(graph, inner, tuple(first[axis] for axis in order))
    if order == tuple(range(len(order))):
        return x
    shape = tuple(x.shape[axis] for axis in order)
    return graph.node(
        "transpose", (x,), x.precision, x.interval, shape, axes=order
    )


def channels_first(graph: CortexGraph, x: CortexValue) -> CortexValue:
    """NHWC to Cortex's NCHW."""
    return transposed(graph, x, (0, 3, 1, 2))


def channels_last(graph: CortexGraph, x: CortexValue) -> CortexValue:
    """Back again."""
    return transposed(graph, x, (0, 2, 3, 1))


def joined(
    graph: CortexGraph, values: list[CortexValue], axis: int
) -> CortexValue:
    """One after the other along an axis."""
    if len(values) == 1:
        return values[0]
    shape = list(values[0].shape)
    shape[axis] = sum(value.shape[axis] for value in values)
    return graph.node(
        "concatenate",
        tuple(values),
        max(value.precision for value in values),
        (
            min(value.interval[0] for value in values),
            max(value.interval[1] for value in values),
        ),
        tuple(shape),
        axis=axis,
    )


def padded(
    graph: CortexGraph, x: CortexValue, pads: tuple[int, ...], number: int
) -> CortexValue:
    """A number before and after along each axis, as parameters joined to it."""
    for axis in range(len(x.shape)):
        parts = [x]
        for index, count in enumerate(pads[2 * axis : 2 * axis + 2]):
            if count:
                shape = list(x.shape)
                shape[axis] = count
                part = graph.parameter(np.full(shape, number, np.int64))
                parts.insert(index * len(parts), part)
        x = joined(graph, parts, axis)
    return x


def taken(
    graph: CortexGraph, x: CortexValue, indices: IntArray, axis: int
) -> CortexValue:
    """Rows of an axis by fixed indices."""
    if indices.tolist() == list(range(x.shape[axis])):
        return x
    shape = list(x.shape)
    shape[axis] = len(indices)
    operands = x, graph.parameter(indices)
    return graph.node(
        "take", operands, x.precision, x.interval, tuple(shape), axis=axis
    )


def reshape(instruction: CortexInstruction) -> CortexValue:
    """Row-major."""
    return reshaped(instruction.graph, instruction.value(0), instruction.shape)


def transpose(instruction: CortexInstruction) -> CortexValue:
    """By `perm`."""
    order = instruction.integers("perm") or (0,)
    return transposed(instruction.graph, instruction.value(0), order)


def concat(instruction: CortexInstruction) -> CortexValue:
    """Along `axis`."""
    values = [
        instruction.value(index) for index in range(len(instruction.operands))
    ]
    return joined(instruction.graph, values, instruction.integer("axis"))


def slice_(instruction: CortexInstruction) -> CortexValue:
    """A box out of x."""
    x, start = instruction.value(0), instruction.integers("start")
    if x.shape == instruction.shape:
        return x
    end = tuple(map(sum, zip(start, instruction.shape, strict=True)))
    return instruction.graph.node(
        "strided_slice",
        (x,),
        x.precision,
        x.interval,
        instruction.shape,
        begin=start,
        end=end,
        stride=(1,) * len(start),
    )


def pad(instruction: CortexInstruction) -> CortexValue:
    """With `value` around."""
    number = instruction.integer("value")
    return padded(
        instruction.graph,
        instruction.value(0),
        instruction.integers("pads"),
        number,
    )


def tile(instruction: CortexInstruction) -> CortexValue:
    """Repeated."""
    x, multiples = instruction.value(0), instruction.integers("multiples")
    if x.shape == instruction.shape:
        return x
    if max(multiples) > MAX_ATTRIBUTE:
        raise Refused(f"it repeats more than {MAX_ATTRIBUTE} times")
    return instruction.graph.node(
        "tile", (x,), x.precision, x.interval, instruction.shape, reps=multiples
    )


def reverse(instruction: CortexInstruction) -> CortexValue:
    """The last first, by index."""
    axis = instruction.integer("axis")
    indices = np.arange(instruction.shape[axis])[::-1]
    return taken(instruction.graph, instruction.value(0), indices, axis)


def gather(instruction: CortexInstruction) -> CortexValue:
    """From all samples' rows as one list."""
    graph = instruction.graph
    values = instruction.value(0)
    indices = instruction.value(1)
    count, rows, width = values.shape
    first = (np.arange(count) * rows).reshape(count, 1)
    if count > 1:
        indices = exact.add(graph, indices, graph.parameter(first))
    flat = reshaped(graph, values, (count * rows, width))
    return graph.node(
        "take",
        (flat, indices),
        flat.precision,
        flat.interval,
        instruction.shape,
        axis=0,
    )


def resize(instruction: CortexInstruction) -> CortexValue:
    """The nearest row and column; or sums of two rows and of two columns by their weights."""
    (yn, yd, xn, xd), mode = (
        instruction.integers("scale"),
        instruction.attributes["mode"],
    )
    x = instruction.value(0)
    for axis, n, d in ((1, yn, yd), (2, xn, xd)):
        offset = instruction.integers("offset")[axis - 1]
        place = np.arange(instruction.shape[axis]) * d + offset
        along = x, axis, place // n, place % n, n
        x = (_nearest if mode == "nearest" else _bilinear)(
            instruction.graph, *along
        )
    return x


def _nearest(
    graph: CortexGraph,
    x: CortexValue,
    axis: int,
    at: IntArray,
    rest: IntArray,
    n: int,
) -> CortexValue:
    indices = np.where(2 * rest >= n, at + 1, at)
    return taken(graph, x, indices.clip(0, x.shape[axis] - 1), axis)


def _bilinear(
    graph: CortexGraph,
    x: CortexValue,
    axis: int,
    at: IntArray,
    rest: IntArray,
    n: int,
) -> CortexValue:
    shape = [1] * len(x.shape)
    shape[axis] = len(at)
    terms = []
    for indices, weights in ((at, n - rest), (at + 1, rest)):
        rows = taken(graph, x, indices.clip(0, x.shape[axis] - 1), axis)
        terms.append(
            exact.mul(graph, rows, graph.parameter(weights.reshape(shape)))
        )
    return exact.add(graph, *terms)


def rows_of(graph: CortexGraph, x: CortexValue, axis: int) -> CortexValue:
    """x as a matrix whose rows lie along an axis."""
    rank = len(x.shape)
    order = (*(k for k in range(rank) if k != axis), axis)
    n = x.shape[axis]
    moved = transposed(graph, x, order)
    return reshaped(graph, moved, (prod(x.shape) // n, n))
