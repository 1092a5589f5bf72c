"""Elements that move without change, and the nearest and the bilinear resize, which read them by index."""

from __future__ import annotations

from math import prod

import numpy as np

from cvm.export.cortex import arithmetic as exact
from cvm.export.cortex.graph import MAX_ATTRIBUTE, Graph, Refused, Value
from cvm.export.cortex.step import Step
from cvm.program import IntArray


def reshaped(graph: Graph, x: Value, shape: tuple[int, ...]) -> Value:
    """The same elements in another shape."""
    if x.shape == shape:
        return x
    return graph.node(
        "reshape", (x,), x.precision, x.interval, shape, shape=shape
    )


def transposed(graph: Graph, x: Value, order: tuple[int, ...]) -> Value:
    """Axis i of the result is axis order[i]; a transpose of a transpose is one, or none."""
    node = graph.nodes[x.node]
    if node.operator == "transpose":
        first = tuple(map(int, node.attributes["axes"].strip("(),").split(",")))
        source = graph.nodes[node.inputs[0]]
        inner = Value(
            node.inputs[0], source.shape, source.precision, x.interval
        )
        return transposed(graph, inner, tuple(first[axis] for axis in order))
    if order == tuple(range(len(order))):
        return x
    shape = tuple(x.shape[axis] for axis in order)
    return graph.node(
        "transpose", (x,), x.precision, x.interval, shape, axes=order
    )


def channels_first(graph: Graph, x: Value) -> Value:
    """NHWC to Cortex's NCHW."""
    return transposed(graph, x, (0, 3, 1, 2))


def channels_last(graph: Graph, x: Value) -> Value:
    """Back again."""
    return transposed(graph, x, (0, 2, 3, 1))


def joined(graph: Graph, values: list[Value], axis: int) -> Value:
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


def padded(graph: Graph, x: Value, pads: tuple[int, ...], number: int) -> Value:
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


def taken(graph: Graph, x: Value, indices: IntArray, axis: int) -> Value:
    """Rows of an axis by fixed indices."""
    if indices.tolist() == list(range(x.shape[axis])):
        return x
    shape = list(x.shape)
    shape[axis] = len(indices)
    operands = x, graph.parameter(indices)
    return graph.node(
        "take", operands, x.precision, x.interval, tuple(shape), axis=axis
    )


def reshape(step: Step) -> Value:
    """Row-major."""
    return reshaped(step.graph, step.value(0), step.shape)


def transpose(step: Step) -> Value:
    """By `perm`."""
    order = step.integers("perm") or (0,)
    return transposed(step.graph, step.value(0), order)


def concat(step: Step) -> Value:
    """Along `axis`."""
    values = [step.value(index) for index in range(len(step.operands))]
    return joined(step.graph, values, step.integer("axis"))


def slice_(step: Step) -> Value:
    """A box out of x."""
    x, start = step.value(0), step.integers("start")
    if x.shape == step.shape:
        return x
    end = tuple(map(sum, zip(start, step.shape, strict=True)))
    return step.graph.node(
        "strided_slice",
        (x,),
        x.precision,
        x.interval,
        step.shape,
        begin=start,
        end=end,
        stride=(1,) * len(start),
    )


def pad(step: Step) -> Value:
    """With `value` around."""
    number = step.integer("value")
    return padded(step.graph, step.value(0), step.integers("pads"), number)


def tile(step: Step) -> Value:
    """Repeated."""
    x, multiples = step.value(0), step.integers("multiples")
    if x.shape == step.shape:
        return x
    if max(multiples) > MAX_ATTRIBUTE:
        raise Refused(f"it repeats more than {MAX_ATTRIBUTE} times")
    return step.graph.node(
        "tile", (x,), x.precision, x.interval, step.shape, reps=multiples
    )


def reverse(step: Step) -> Value:
    """The last first, by index."""
    axis = step.integer("axis")
    indices = np.arange(step.shape[axis])[::-1]
    return taken(step.graph, step.value(0), indices, axis)


def gather(step: Step) -> Value:
    """From all samples' rows as one list."""
    graph, values, indices = step.graph, step.value(0), step.value(1)
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
        step.shape,
        axis=0,
    )


def resize(step: Step) -> Value:
    """The nearest row and column; or sums of two rows and of two columns by their weights."""
    (yn, yd, xn, xd), mode = step.integers("scale"), step.attributes["mode"]
    x = step.value(0)
    for axis, n, d in ((1, yn, yd), (2, xn, xd)):
        offset = step.integers("offset")[axis - 1]
        place = np.arange(step.shape[axis]) * d + offset
        along = x, axis, place // n, place % n, n
        x = (_nearest if mode == "nearest" else _bilinear)(step.graph, *along)
    return x


def _nearest(
    graph: Graph, x: Value, axis: int, at: IntArray, rest: IntArray, n: int
) -> Value:
    indices = np.where(2 * rest >= n, at + 1, at)
    return taken(graph, x, indices.clip(0, x.shape[axis] - 1), axis)


def _bilinear(
    graph: Graph, x: Value, axis: int, at: IntArray, rest: IntArray, n: int
) -> Value:
    shape = [1] * len(x.shape)
    shape[axis] = len(at)
    terms = []
    for indices, weights in ((at, n - rest), (at + 1, rest)):
        rows = taken(graph, x, indices.clip(0, x.shape[axis] - 1), axis)
        terms.append(
            exact.mul(graph, rows, graph.parameter(weights.reshape(shape)))
        )
    return exact.add(graph, *terms)


def rows_of(graph: Graph, x: Value, axis: int) -> Value:
    """x as a matrix whose rows lie along an axis."""
    rank = len(x.shape)
    order = (*(k for k in range(rank) if k != axis), axis)
    n = x.shape[axis]
    moved = transposed(graph, x, order)
    return reshaped(graph, moved, (prod(x.shape) // n, n))
