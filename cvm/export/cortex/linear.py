"""Sums of products. Cortex multiplies integers of 8 bits, -127..127, whose zero point is taken off before."""

from __future__ import annotations

import numpy as np

from cvm.export.cortex import arithmetic as exact
from cvm.export.cortex.graph import (
    MAX_ATTRIBUTE,
    CortexGraph,
    CortexValue,
    Refused,
    bits,
)
from cvm.export.cortex.instruction import CortexInstruction
from cvm.export.cortex.movement import (
    channels_first,
    channels_last,
    padded,
    reshaped,
    transposed,
)
from cvm.export.cortex.reduction import sum_of_rows
from cvm.program import IntArray

BITS = 8  # of what products read


def eight_bits(
    graph: CortexGraph, x: CortexValue, zero_point: int
) -> CortexValue:
    """x less its zero point, in 8 bits."""
    x = exact.add_number(graph, x, -zero_point)
    if bits(x.interval) > BITS:
        low, high = x.interval
        raise Refused(f"it reads {low}..{high}, and Cortex -127..127")
    return graph.tight(x, BITS)


def _weights(graph: CortexGraph, array: IntArray) -> CortexValue:
    if array.min() < -127:
        raise Refused("its weights hold -128, and Cortex's -127..127")
    return graph.parameter(array)


def _accumulated(x: CortexValue, w: CortexValue, b: CortexValue) -> int:
    """The runtime's rule for a sum of products and a bias."""
    terms = int(np.prod(w.shape[1:]))
    return max(x.precision + w.precision + terms.bit_length(), b.precision) + 1


def conv2d(instruction: CortexInstruction) -> CortexValue:
    """Images are NCHW there; pads that differ become zeros around the image."""
    graph = instruction.graph
    x = eight_bits(graph, instruction.value(0), instruction.integer("input_zp"))
    w = _weights(graph, instruction.constant(1).transpose(0, 3, 1, 2))
    b = graph.parameter(instruction.constant(2))
    x, padding = evenly_padded(graph, channels_first(graph, x), instruction, 0)
    attributes = {
        "strides": instruction.integers("stride"),
        "padding": padding,
        "dilation": instruction.integers("dilation"),
    }
    require_small(*attributes.values())
    n, height, width, channels = instruction.shape
    y = graph.node(
        "conv2d",
        (x, w, b),
        _accumulated(x, w, b),
        instruction.interval,
        (n, channels, height, width),
        channels=channels,
        kernel_size=w.shape[2:],
        groups=instruction.integer("groups"),
        use_bias=True,
        **attributes,
    )
    return channels_last(graph, y)


def evenly_padded(
    graph: CortexGraph,
    x: CortexValue,
    instruction: CortexInstruction,
    number: int,
) -> tuple[CortexValue, tuple[int, int]]:
    """An image and its remaining padding: Cortex has one number for top and bottom, and one for left and right."""
    top, bottom, left, right = instruction.integers("pad")
    if (top, left) == (bottom, right):
        return x, (top, left)
    pads = (0, 0, 0, 0, top, bottom, left, right)
    return padded(graph, x, pads, number), (0, 0)


def require_small(*lists: tuple[int, ...]) -> None:
    """Refuse attributes beyond Cortex's range."""
    if any(max(numbers) > MAX_ATTRIBUTE for numbers in lists):
        raise Refused(f"its windows exceed Cortex's {MAX_ATTRIBUTE}")


def dense(instruction: CortexInstruction) -> CortexValue:
    """The same operator."""
    graph = instruction.graph
    x = eight_bits(graph, instruction.value(0), instruction.integer("input_zp"))
    w = _weights(graph, instruction.constant(1))
    b = graph.parameter(instruction.constant(2))
    precision = _accumulated(x, w, b)
    return graph.node(
        "dense",
        (x, w, b),
        precision,
        instruction.interval,
        instruction.shape,
        units=w.shape[0],
        use_bias=True,
    )


def matmul(instruction: CortexInstruction) -> CortexValue:
    """All products at once, then sums of rows: Cortex has no product of two computed matrices."""
    graph = instruction.graph
    a = exact.add_number(
        graph, instruction.value(0), -instruction.integer("a_zp")
    )
    b = exact.add_number(
        graph, instruction.value(1), -instruction.integer("b_zp")
    )
    batch, m, n = instruction.shape
    k = a.shape[2]
    left = reshaped(graph, a, (batch, m, 1, k))
    right = transposed(graph, b, (0, 2, 1))
    right = reshaped(graph, right, (batch, 1, n, k))
    products = exact.mul(graph, left, right)
    rows = reshaped(graph, products, (batch * m * n, k))
    return reshaped(graph, sum_of_rows(graph, rows), instruction.shape)
