"""Windows: the greatest is Cortex's own; a mean is a sum of products with ones, divided."""

from __future__ import annotations

import numpy as np

from cvm.export.cortex import arithmetic as exact
from cvm.export.cortex.graph import CortexValue
from cvm.export.cortex.instruction import CortexInstruction
from cvm.export.cortex.linear import (
    eight_bits,
    evenly_padded,
    require_small,
)
from cvm.export.cortex.movement import channels_first, channels_last
from cvm.program import DTYPE_RANGES, IntArray


def max_pool2d(instruction: CortexInstruction) -> CortexValue:
    """Where pads differ, the least integer that x can hold stands around it."""
    graph, x = instruction.graph, instruction.value(0)
    least = x.interval[0]
    x, padding = evenly_padded(
        graph, channels_first(graph, x), instruction, least
    )
    kernel = instruction.integers("kernel")
    strides = instruction.integers("stride")
    require_small(kernel, strides, padding)
    n, height, width, channels = instruction.shape
    y = graph.node(
        "max_pool2d",
        (x,),
        x.precision,
        x.interval,
        (n, channels, height, width),
        pool_size=kernel,
        strides=strides,
        padding=padding,
    )
    return channels_last(graph, y)


def avg_pool2d(instruction: CortexInstruction) -> CortexValue:
    """trunc((2s + r * sign(s)) / 2r), half away from zero, for the sum s of r places.

    SPEC's formula is that quotient while |s| < 2^29; here |s| is below 2^24 * 2^7 by Cortex's limits on windows, and the
    rule on a sum's precision keeps it below 2^29.
    """
    graph = instruction.graph
    x = eight_bits(graph, instruction.value(0), instruction.integer("input_zp"))
    sums = channels_last(graph, _window_sums(instruction, x))
    sums = graph.tight(sums, 29)
    places = _places(instruction)
    sign = exact.clip(graph, sums, -1, 1)
    halves = exact.mul(graph, sign, graph.parameter(places))
    twice = exact.mul(graph, sums, graph.number(2, 4))
    y = exact.divide(
        graph,
        exact.add(graph, twice, halves),
        graph.parameter(2 * places),
        x.interval,
    )
    y = exact.add_number(graph, y, instruction.integer("output_zp"))
    return exact.clip(graph, y, *DTYPE_RANGES[instruction.result.dtype])


def _window_sums(instruction: CortexInstruction, x: CortexValue) -> CortexValue:
    """A convolution of each channel by itself with weights of 1."""
    graph, kernel = instruction.graph, instruction.integers("kernel")
    strides = instruction.integers("stride")
    x, padding = evenly_padded(graph, channels_first(graph, x), instruction, 0)
    require_small(kernel, strides, padding)
    n, height, width, channels = instruction.shape
    ones = graph.parameter(np.ones((channels, 1, *kernel), np.int64))
    terms = kernel[0] * kernel[1]
    low, high = x.interval
    return graph.node(
        "conv2d",
        (x, ones),
        x.precision + ones.precision + terms.bit_length(),
        (min(terms * low, 0), max(terms * high, 0)),
        (n, channels, height, width),
        channels=channels,
        kernel_size=kernel,
        strides=strides,
        padding=padding,
        dilation=(1, 1),
        groups=channels,
        use_bias=False,
    )


def _places(instruction: CortexInstruction) -> IntArray:
    """How many places of each window lie inside x."""
    (top, _, left, _), (_, height, width, _) = (
        instruction.integers("pad"),
        instruction.types[0].shape,
    )
    counts = []
    for axis, before, size in ((0, top, height), (1, left, width)):
        stride, kernel = (
            instruction.integers(name)[axis] for name in ("stride", "kernel")
        )
        first = np.arange(instruction.shape[1 + axis]) * stride - before
        inside = np.minimum(first + kernel, size) - np.maximum(first, 0)
        counts.append(inside)
    places: IntArray = counts[0][:, None] * counts[1]
    return places.reshape(1, *instruction.shape[1:3], 1)
