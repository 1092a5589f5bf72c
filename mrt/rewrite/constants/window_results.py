"""Computes convolutions and pools of constants, with sums in float64 and in the order of the weights."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx_ir as ir

from mrt.graph.values import constant, int_attribute, operand, shape_of
from mrt.rewrite.linear.conv_pool_attributes import WindowAttributes, window_of

Index = tuple[Any, ...]
Exact = npt.NDArray[np.float64]
MOST_PRODUCTS = 1 << 28  # about one second
MOST_HELD = 1 << 24  # numbers of an image with its pads
MOST_STEPS = 1 << 16  # weights of one result, which are taken one by one


def convolution(node: ir.Node, x: Exact) -> Exact | None:
    """Return the result of a Conv; of zeros alone it is the bias."""
    weights = np.asarray(constant(operand(node, 1)), np.float64)
    moved, group = _moved_window(node, x), int_attribute(node, "group", 1)
    if moved is None or weights.shape[2:] != moved[0].kernel:
        return None
    window, y = moved
    if group < 1 or x.shape[1] != group * weights.shape[1] or y[1] % group:
        return None
    total = np.zeros((y[0], group, y[1] // group, *y[2:]))
    if x.any():
        if not _is_bounded(total.size, math.prod(weights.shape[1:])):
            return None
        kernels = weights.reshape(group, y[1] // group, *weights.shape[1:])
        for place, part in _parts(_in_groups(x, group), window, y[2:], 0.0):
            _add_products(total, part, kernels.swapaxes(1, 2), place)
    return _with_bias(node, total.reshape(y))


def transposed_convolution(node: ir.Node, x: Exact) -> Exact | None:
    """Return the result of a ConvTranspose; of zeros alone it is the bias."""
    weights = np.asarray(constant(operand(node, 1)), np.float64)
    moved, group = _moved_window(node, x), int_attribute(node, "group", 1)
    if moved is None or weights.shape[2:] != moved[0].kernel:
        return None
    window, y = moved
    if group < 1 or x.shape[1] != weights.shape[0] or x.shape[1] % group:
        return None
    rank = len(window.kernel)
    begins, ends = window.pads[:rank], window.pads[rank:]
    sizes = [sum(parts) for parts in zip(begins, y[2:], ends, strict=True)]
    total = np.zeros((y[0], group, y[1] // group, *sizes))
    if x.any():
        grouped = _in_groups(x, group)
        steps = grouped.shape[2] * math.prod(window.kernel)
        if not _is_bounded(x.size // x.shape[1] * y[1], steps):
            return None
        kernels = weights.reshape(group, -1, *weights.shape[1:])
        for place in np.ndindex(*window.kernel):
            target = total[_strided(place, window, x.shape[2:])]
            _add_products(target, grouped, kernels, place)
    kept: Index = (
        ...,
        *(
            slice(begin, begin + size)
            for begin, size in zip(begins, y[2:], strict=True)
        ),
    )
    return _with_bias(node, total[kept].reshape(y))


def _add_products(
    total: Exact, part: Exact, kernels: Exact, place: Sequence[int]
) -> None:
    """Add to [N, groups, results, ...] the weights [groups, channels, results, ...] at a place times [N, groups, channels, ...]."""
    at_place: Index = (..., *place)
    weights = kernels[at_place]
    ones = (1,) * (part.ndim - 3)
    for channel in range(weights.shape[1]):
        weight = weights[:, channel].reshape(*total.shape[1:3], *ones)
        total += part[:, :, channel, None] * weight


def greatest_of_windows(node: ir.Node, x: Exact) -> Exact | None:
    """Return the result of a MaxPool."""
    moved = _moved_window(node, x)
    if moved is None or not _suits(*moved):
        return None
    window, y = moved
    greatest = np.full(y, -np.inf)
    for _, part in _parts(x, window, y[2:], -np.inf):
        greatest = np.maximum(greatest, part)
    return greatest


def means_of_windows(node: ir.Node, x: Exact) -> Exact | None:
    """Return the result of an AveragePool: each sum is divided by the numbers in its window."""
    moved = _moved_window(node, x)
    if moved is None or not _suits(*moved):
        return None
    window, y = moved
    rank, counted = len(window.kernel), np.ones((1, 1, *x.shape[2:]))
    if int_attribute(node, "count_include_pad", 0):
        pads = zip(window.pads[:rank], window.pads[rank:], strict=True)
        counted = np.pad(counted, [(0, 0), (0, 0), *pads], constant_values=1)
        bare = WindowAttributes(window.kernel, window.strides, window.dilations, (0,) * 2 * rank)  # fmt: skip
    else:
        bare = window
    total, count = np.zeros(y), np.zeros((1, 1, *y[2:]))
    for _, part in _parts(x, window, y[2:], 0.0):
        total += part
    for _, part in _parts(counted, bare, y[2:], 0.0):
        count += part
    return total / np.maximum(count, 1)


def _moved_window(
    node: ir.Node, x: Exact
) -> tuple[WindowAttributes, tuple[int, ...]] | None:
    """Return the window and the shape of the result; None where the window is none, or its pads are too large."""
    window, y = window_of(node), shape_of(node.outputs[0])
    if window is None or y is None or not x.size:
        return None
    rank = x.ndim - 2
    lists = (window.kernel, window.strides, window.dilations, window.pads)
    if [len(numbers) for numbers in lists] != [rank, rank, rank, 2 * rank]:
        return None
    if len(y) != x.ndim or min(window.pads) < 0 or min(map(min, lists[:3])) < 1:
        return None
    spans = [
        max(length, size * stride) + before + after + extent
        for length, size, stride, before, after, extent in zip(
            x.shape[2:], y[2:], window.strides, window.pads[:rank], window.pads[rank:], window.extent, strict=True,
        )
    ]  # fmt: skip
    held = x.shape[0] * max(x.shape[1], y[1]) * math.prod(spans)
    return None if held > MOST_HELD else (window, y)


def _suits(window: WindowAttributes, y: Sequence[int]) -> bool:
    return _is_bounded(math.prod(y), math.prod(window.kernel))


def _is_bounded(results: int, steps: int) -> bool:
    return results * steps <= MOST_PRODUCTS and steps <= MOST_STEPS


def _in_groups(x: Exact, group: int) -> Exact:
    """Return [N, C, ...] as [N, groups, channels of a group, ...]."""
    return x.reshape(x.shape[0], group, -1, *x.shape[2:])


def _parts(
    x: Exact, window: WindowAttributes, y: Sequence[int], fill: float
) -> Iterator[tuple[tuple[int, ...], Exact]]:
    """Yield each place of the kernel with the numbers that lie under it, one for each result."""
    rank = len(window.kernel)
    begins = window.pads[:rank]
    reach = zip(y, window.strides, window.extent, strict=True)
    ends = [
        max((size - 1) * stride + extent - begin - length, 0)
        for (size, stride, extent), begin, length in zip(
            reach, begins, x.shape[-rank:], strict=True
        )
    ]
    pads = [(0, 0)] * (x.ndim - rank) + list(zip(begins, ends, strict=True))
    padded = np.pad(x, pads, constant_values=fill)
    for place in itertools.product(*map(range, window.kernel)):
        yield place, padded[_strided(place, window, y)]


def _strided(
    place: Sequence[int], window: WindowAttributes, sizes: Sequence[int]
) -> Index:
    """Return where a place of the kernel lies along each axis, as often as the window is moved."""
    starts = [at * by for at, by in zip(place, window.dilations, strict=True)]
    steps = zip(starts, sizes, window.strides, strict=True)
    slices = [
        slice(start, start + (size - 1) * stride + 1, stride)
        for start, size, stride in steps
    ]
    return (..., *slices)


def _with_bias(node: ir.Node, total: Exact) -> Exact:
    bias = constant(operand(node, 2))
    if bias is None:
        return total
    return total + bias.reshape(-1, *(1,) * (total.ndim - 2))
