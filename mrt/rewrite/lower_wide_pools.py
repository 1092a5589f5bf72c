"""Pools that the machine has no window for: dilated ones, and those of powers (LpPool)."""

from __future__ import annotations

import math

import numpy as np
import onnx_ir as ir

from mrt.rewrite.edit import Patch, first, integer, nodes, set_attributes, shape_of
from mrt.rewrite.fold_constants import LARGEST_RESULT
from mrt.rewrite.lower_max_pool import pads_to_the_end
from mrt.rewrite.write_windows import Window, window_of

MOST_TAPS = 256  # of a dilated pool, along one axis


def lower_wide_pools(model: ir.Model) -> int:
    """Dilated MaxPool -> Max of lookups; LpPool -> (Conv of |x|^p by ones)^(1/p); and others, each by its own function.

    GlobalLpPool -> ReduceL1 or ReduceL2, else the same by ReduceSum. AveragePool of dilations, where counts differ -> Conv / count.
    Applies where the window is written out. Equal but for rounding.
    """
    lower = {"MaxPool": _dilated_max, "AveragePool": _dilated_average, "LpPool": _powers, "GlobalLpPool": _all_powers}
    return sum(lower[node.op_type](node) for node in nodes(model, *lower))


def _dilated_max(node: ir.Node) -> bool:
    """One axis after the other. A tap that lies in the padding stands for another tap of its window."""
    window, x, y = window_of(node), shape_of(first(node)), shape_of(node.outputs[0])
    if window is None or x is None or y is None or all(step == 1 for step in window.dilations):
        return False
    if _is_large(window, x, y):
        return False
    patch, value = Patch(node), first(node)
    for place in range(len(window.kernel)):
        axis = place + 2
        taps = np.arange(window.kernel[place]) * window.dilations[place] - window.pads[place]
        indices = np.arange(y[axis])[:, None] * window.strides[place] + taps
        inside = (indices >= 0) & (indices < x[axis])
        fallback = np.take_along_axis(indices, inside.argmax(axis=1)[:, None], axis=1)
        columns = np.where(inside, indices, fallback).T
        if not inside.any(axis=1).all():
            return False
        parts = [patch.add("Gather", value, patch.axes(column.tolist(), "taps"), axis=axis) for column in columns]
        value = parts[0]
        for part in parts[1:]:
            value = patch.add("Max", value, part)
    patch.finish(value)
    return True


def _dilated_average(node: ir.Node) -> bool:
    window, x, y = window_of(node), shape_of(first(node)), shape_of(node.outputs[0])
    if window is None or x is None or y is None or all(step == 1 for step in window.dilations):
        return False
    with_pads, ceil = integer(node, "count_include_pad", 0), integer(node, "ceil_mode", 0)
    if not ceil and (with_pads or not any(window.pads)):
        return False  # the same number everywhere: a convolution
    if _is_large(window, x, y):
        return False
    counts = np.ones(())
    for place in range(len(window.kernel)):
        taps = np.arange(window.kernel[place]) * window.dilations[place] - window.pads[place]
        indices = np.arange(y[place + 2])[:, None] * window.strides[place] + taps
        before, behind = (window.pads[place], window.pads[place + len(window.kernel)]) if with_pads else (0, 0)
        inside = np.count_nonzero((indices >= -before) & (indices < x[place + 2] + behind), axis=1)
        counts = np.multiply.outer(counts, inside)
    patch = Patch(node)
    total = _total(patch, first(node), window, x, y)
    patch.finish(patch.add("Mul", total, patch.constant((1.0 / counts).astype(np.float32), "inverse_count")))
    return True


def _powers(node: ir.Node) -> bool:
    window, x, y = window_of(node), shape_of(first(node)), shape_of(node.outputs[0])
    if window is None or x is None or y is None or _is_large(window, x, y):
        return False
    patch, p = Patch(node), integer(node, "p", 2)
    if p < 1:
        return False
    patch.finish(_root(patch, _total(patch, _raised(patch, first(node), p), window, x, y), p))
    return True


def _all_powers(node: ir.Node) -> bool:
    shape = shape_of(first(node))
    if shape is None or len(shape) < 3 or integer(node, "p", 2) < 1:
        return False
    patch, p = Patch(node), integer(node, "p", 2)
    axes = patch.axes(list(range(2, len(shape))))
    if p in (1, 2):
        patch.finish(patch.add(f"ReduceL{p}", first(node), axes, keepdims=1, noop_with_empty_axes=0))
    else:
        total = patch.add("ReduceSum", _raised(patch, first(node), p), axes, keepdims=1, noop_with_empty_axes=0)
        patch.finish(_root(patch, total, p))
    return True


def _is_large(window: Window, x: tuple[int, ...], y: tuple[int, ...]) -> bool:
    """More numbers than a rewrite may make up: of taps along an axis, of places, of weights; or too many pieces."""
    taps = max(size * kernel for size, kernel in zip(y[2:], window.kernel, strict=True))
    numbers = max(taps, math.prod(y[2:]), math.prod(window.kernel) * x[1])
    return numbers > LARGEST_RESULT or max(window.kernel) > MOST_TAPS


def _raised(patch: Patch, x: ir.Value, p: int) -> ir.Value:
    if p == 2:
        return patch.add("Mul", x, x)
    size = patch.add("Abs", x)
    return size if p == 1 else patch.add("Pow", size, patch.constant(np.array(p, np.float32), "p"))


def _root(patch: Patch, x: ir.Value, p: int) -> ir.Value:
    if p == 1:
        return patch.add("Identity", x)
    return patch.add("Sqrt", x) if p == 2 else patch.add("Pow", x, patch.constant(np.array(1 / p, np.float32), "root"))


def _total(patch: Patch, value: ir.Value, window: Window, x: tuple[int, ...], y: tuple[int, ...]) -> ir.Value:
    """The sum over each window, by a depthwise convolution with ones."""
    channels, pads = x[1], pads_to_the_end(window, x[2:], y[2:])
    ones = patch.constant(np.ones((channels, 1, *window.kernel), np.float32), "ones")
    total = patch.add("Conv", value, ones, patch.constant(np.zeros(channels, np.float32), "bias"))
    maker = total.producer()
    assert maker is not None
    set_attributes(maker, kernel_shape=window.kernel, strides=window.strides, dilations=window.dilations, pads=pads)
    set_attributes(maker, group=channels)
    return total
