"""Sums of products. Cortex multiplies integers of 8 bits, -127..127, whose zero point is taken off before."""

from __future__ import annotations

import numpy as np

from cvm.export.cortex import arithmetic as exact
from cvm.export.cortex.graph import MAX_ATTRIBUTE, Graph, Refused, Value, bits
from cvm.export.cortex.movement import (
    channels_first,
    channels_last,
    padded,
    reshaped,
    transposed,
)
from cvm.export.cortex.reduction import sum_of_rows
from cvm.export.cortex.step import Step
from cvm.program import IntArray

BITS = 8  # of what products read


def eight_bits(graph: Graph, x: Value, zero_point: int) -> Value:
    """x less its zero point, in 8 bits."""
    x = exact.add_number(graph, x, -zero_point)
    if bits(x.interval) > BITS:
        low, high = x.interval
        raise Refused(f"it reads {low}..{high}, and Cortex -127..127")
    return graph.tight(x, BITS)


def _weights(graph: Graph, array: IntArray) -> Value:
    if array.min() < -127:
        raise Refused("its weights hold -128, and Cortex's -127..127")
    return graph.parameter(array)


def _accumulated(x: Value, w: Value, b: Value) -> int:
    """The runtime's rule for a sum of products and a bias."""
    terms = int(np.prod(w.shape[1:]))
    return max(x.precision + w.precision + terms.bit_length(), b.precision) + 1


def conv2d(step: Step) -> Value:
    """Images are NCHW there; pads that differ become zeros around the image."""
    graph = step.graph
    x = eight_bits(graph, step.value(0), step.integer("input_zp"))
    w = _weights(graph, step.known(1).transpose(0, 3, 1, 2))
    b = graph.parameter(step.known(2))
    x, padding = evenly_padded(graph, channels_first(graph, x), step, 0)
    attributes = {
        "strides": step.integers("stride"),
        "padding": padding,
        "dilation": step.integers("dilation"),
    }
    require_small(*attributes.values())
    n, height, width, channels = step.shape
    y = graph.node(
        "conv2d",
        (x, w, b),
        _accumulated(x, w, b),
        step.interval,
        (n, channels, height, width),
        channels=channels,
        kernel_size=w.shape[2:],
        groups=step.integer("groups"),
        use_bias=True,
        **attributes,
    )
    return channels_last(graph, y)


def evenly_padded(
    graph: Graph, x: Value, step: Step, number: int
) -> tuple[Value, tuple[int, int]]:
    """An image and the padding that is left: Cortex has one number for top and bottom, and one for left and right."""
    top, bottom, left, right = step.integers("pad")
    if (top, left) == (bottom, right):
        return x, (top, left)
    pads = (0, 0, 0, 0, top, bottom, left, right)
    return padded(graph, x, pads, number), (0, 0)


def require_small(*lists: tuple[int, ...]) -> None:
    """Refuse attributes beyond Cortex's range."""
    if any(max(numbers) > MAX_ATTRIBUTE for numbers in lists):
        raise Refused(f"its windows exceed Cortex's {MAX_ATTRIBUTE}")


def dense(step: Step) -> Value:
    """The same operator."""
    graph = step.graph
    x = eight_bits(graph, step.value(0), step.integer("input_zp"))
    w = _weights(graph, step.known(1))
    b = graph.parameter(step.known(2))
    precision = _accumulated(x, w, b)
    return graph.node(
        "dense",
        (x, w, b),
        precision,
        step.interval,
        step.shape,
        units=w.shape[0],
        use_bias=True,
    )


def matmul(step: Step) -> Value:
    """All products at once, then sums of rows: Cortex has no product of two computed matrices."""
    graph = step.graph
    a = exact.add_number(graph, step.value(0), -step.integer("a_zp"))
    b = exact.add_number(graph, step.value(1), -step.integer("b_zp"))
    batch, m, n = step.shape
    k = a.shape[2]
    left = reshaped(graph, a, (batch, m, 1, k))
    right = transposed(graph, b, (0, 2, 1))
    right = reshaped(graph, right, (batch, 1, n, k))
    products = exact.mul(graph, left, right)
    rows = reshaped(graph, products, (batch * m * n, k))
    return reshaped(graph, sum_of_rows(graph, rows), step.shape)
