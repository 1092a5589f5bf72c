"""Windows: the greatest is Cortex's own; a mean is a sum of products with ones, divided."""

from __future__ import annotations

import numpy as np

from cvm.export.cortex import arithmetic as exact
from cvm.export.cortex.graph import Value
from cvm.export.cortex.linear import (
    eight_bits,
    evenly_padded,
    require_small,
)
from cvm.export.cortex.movement import channels_first, channels_last
from cvm.export.cortex.step import Step
from cvm.program import DTYPE_RANGES, IntArray


def max_pool2d(step: Step) -> Value:
    """Where pads differ, the least integer that x can hold stands around it."""
    graph, x = step.graph, step.value(0)
    least = x.interval[0]
    x, padding = evenly_padded(graph, channels_first(graph, x), step, least)
    kernel, strides = step.integers("kernel"), step.integers("stride")
    require_small(kernel, strides, padding)
    n, height, width, channels = step.shape
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


def avg_pool2d(step: Step) -> Value:
    """trunc((2s + r * sign(s)) / 2r), half away from zero, for the sum s of r places.

    SPEC's formula is that quotient while |s| < 2^29; here |s| is below 2^24 * 2^7 by Cortex's limits on windows, and the
    rule on a sum's precision keeps it below 2^29.
    """
    graph = step.graph
    x = eight_bits(graph, step.value(0), step.integer("input_zp"))
    sums = channels_last(graph, _window_sums(step, x))
    sums = graph.tight(sums, 29)
    places = _places(step)
    sign = exact.clip(graph, sums, -1, 1)
    halves = exact.mul(graph, sign, graph.parameter(places))
    twice = exact.mul(graph, sums, graph.number(2, 4))
    y = exact.divide(
        graph,
        exact.add(graph, twice, halves),
        graph.parameter(2 * places),
        x.interval,
    )
    y = exact.add_number(graph, y, step.integer("output_zp"))
    return exact.clip(graph, y, *DTYPE_RANGES[step.result.dtype])


def _window_sums(step: Step, x: Value) -> Value:
    """A convolution of each channel by itself with weights of 1."""
    graph, kernel = step.graph, step.integers("kernel")
    strides = step.integers("stride")
    x, padding = evenly_padded(graph, channels_first(graph, x), step, 0)
    require_small(kernel, strides, padding)
    n, height, width, channels = step.shape
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


def _places(step: Step) -> IntArray:
    """How many places of each window lie inside x."""
    (top, _, left, _), (_, height, width, _) = (
        step.integers("pad"),
        step.types[0].shape,
    )
    counts = []
    for axis, before, size in ((0, top, height), (1, left, width)):
        stride, kernel = (
            step.integers(name)[axis] for name in ("stride", "kernel")
        )
        first = np.arange(step.shape[1 + axis]) * stride - before
        inside = np.minimum(first + kernel, size) - np.maximum(first, 0)
        counts.append(inside)
    places: IntArray = counts[0][:, None] * counts[1]
    return places.reshape(1, *step.shape[1:3], 1)
