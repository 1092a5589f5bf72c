"""Lowers dilated pools and LpPool, which the machine does not have."""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np
import onnx_ir as ir

from mrt.graph.patch import Patch, set_attributes
from mrt.graph.values import first, int_attribute, nodes, shape_of
from mrt.rewrite.canonical_operators import MOST_DIMENSIONS
from mrt.rewrite.constants.fold_constants import LARGEST_RESULT
from mrt.rewrite.linear.conv_pool_attributes import WindowAttributes, window_of
from mrt.rewrite.pooling.max_pool import pads_to_the_end

MOST_TAPS = 256  # of a dilated pool, along one axis
SMALLEST = 1e-30  # replaces a divisor of 0; its dividend is 0 too


def lower_dilated_and_lp_pool(model: ir.Model) -> int:
    """Dilated MaxPool and AveragePool, LpPool, GlobalLpPool -> plain operators.

      dilated MaxPool -> Max of Gathers
      dilated AveragePool, where counts differ -> Conv / count
      LpPool -> Sqrt(Conv of x * x with ones), or Conv of |x| with ones
      GlobalLpPool -> ReduceL2 or ReduceL1
      the last two with another p -> sums of powers of x / the greatest |x|

    Applies where the window is written out. Equal but for rounding.
    """
    lower = {
        "MaxPool": _dilated_max,
        "AveragePool": _dilated_average,
        "LpPool": _powers,
        "GlobalLpPool": _all_powers,
    }
    return sum(lower[node.op_type](node) for node in nodes(model, *lower))


def _dilated_max(node: ir.Node) -> bool:
    """Take the maximum along one axis after the other.

    A tap in the padding is replaced by another tap of its window.
    """
    window = window_of(node)
    x = shape_of(first(node))
    y = shape_of(node.outputs[0])
    if (
        window is None
        or x is None
        or y is None
        or all(step == 1 for step in window.dilations)
    ):
        return False
    if _is_large(window, x, y):
        return False
    patch, value = Patch(node), first(node)
    for place in range(len(window.kernel)):
        axis = place + 2
        taps = (
            np.arange(window.kernel[place]) * window.dilations[place]
            - window.pads[place]
        )
        indices = np.arange(y[axis])[:, None] * window.strides[place] + taps
        inside = (indices >= 0) & (indices < x[axis])
        fallback = np.take_along_axis(
            indices, inside.argmax(axis=1)[:, None], axis=1
        )
        columns = np.where(inside, indices, fallback).T
        if not inside.any(axis=1).all():
            return False
        parts = [
            patch.add(
                "Gather", value, patch.axes(column.tolist(), "taps"), axis=axis
            )
            for column in columns
        ]
        value = parts[0]
        for elements in parts[1:]:
            value = patch.add("Max", value, elements)
    patch.finish(value)
    return True


def _dilated_average(node: ir.Node) -> bool:
    window = window_of(node)
    x = shape_of(first(node))
    y = shape_of(node.outputs[0])
    if (
        window is None
        or x is None
        or y is None
        or all(step == 1 for step in window.dilations)
    ):
        return False
    with_pads = int_attribute(node, "count_include_pad", 0)
    ceil = int_attribute(node, "ceil_mode", 0)
    if not ceil and (with_pads or not any(window.pads)):
        return False  # all counts are equal: lower_average_pool makes it a Conv
    if _is_large(window, x, y):
        return False
    counts = np.ones(())
    for place in range(len(window.kernel)):
        taps = (
            np.arange(window.kernel[place]) * window.dilations[place]
            - window.pads[place]
        )
        indices = (
            np.arange(y[place + 2])[:, None] * window.strides[place] + taps
        )
        before, behind = (
            (window.pads[place], window.pads[place + len(window.kernel)])
            if with_pads
            else (0, 0)
        )
        inside = np.count_nonzero(
            (indices >= -before) & (indices < x[place + 2] + behind), axis=1
        )
        counts = np.multiply.outer(counts, inside)
    patch = Patch(node)
    total = _total(patch, first(node), window, x, y)
    patch.finish(
        patch.add(
            "Mul",
            total,
            patch.constant((1.0 / counts).astype(np.float32), "inverse_count"),
        )
    )
    return True


def _powers(node: ir.Node) -> bool:
    window = window_of(node)
    x = shape_of(first(node))
    y = shape_of(node.outputs[0])
    if window is None or x is None or y is None or _is_large(window, x, y):
        return False
    patch, p = Patch(node), int_attribute(node, "p", 2)
    if p in (1, 2):
        total = _total(patch, _raised(patch, first(node), p), window, x, y)
        patch.finish(patch.add("Sqrt", total) if p == 2 else total)
        return True
    if (
        p < 1
        or len(x) + 1 > MOST_DIMENSIONS
        or math.prod(window.kernel) * math.prod(y) > LARGEST_RESULT
    ):
        return False
    taps = _taps(patch, patch.add("Abs", first(node)), window, x, y)
    patch.finish(
        patch.add(
            "Reshape",
            _norm(patch, taps, p, (0,)),
            patch.axes(y, "shape"),
            allowzero=0,
        )
    )
    return True


def _all_powers(node: ir.Node) -> bool:
    shape = shape_of(first(node))
    if shape is None or len(shape) < 3 or int_attribute(node, "p", 2) < 1:
        return False
    patch, p = Patch(node), int_attribute(node, "p", 2)
    axes = patch.axes(list(range(2, len(shape))))
    if p in (1, 2):
        patch.finish(
            patch.add(
                f"ReduceL{p}",
                first(node),
                axes,
                keepdims=1,
                noop_with_empty_axes=0,
            )
        )
    else:
        patch.finish(
            _norm(patch, patch.add("Abs", first(node)), p, range(2, len(shape)))
        )
    return True


def _is_large(
    window: WindowAttributes, x: tuple[int, ...], y: tuple[int, ...]
) -> bool:
    """Whether a rewrite would create too many numbers or too many pieces.

    Counted are taps along an axis, elements of the result, and weights.
    """
    taps = max(
        size * kernel for size, kernel in zip(y[2:], window.kernel, strict=True)
    )
    numbers = max(taps, math.prod(y[2:]), math.prod(window.kernel) * x[1])
    return numbers > LARGEST_RESULT or max(window.kernel) > MOST_TAPS


def _raised(patch: Patch, x: ir.Value, p: int) -> ir.Value:
    return patch.add("Mul", x, x) if p == 2 else patch.add("Abs", x)


def _norm(
    patch: Patch, sizes: ir.Value, p: int, axes: Iterable[int]
) -> ir.Value:
    """Return m * (sum of (size / m)^p)^(1/p), where m is the greatest size.

    Without the division, the powers in a window of small numbers would vanish beside
    those in a window of large ones.
    """
    over = patch.axes(list(axes), "over")
    greatest = patch.add(
        "ReduceMax", sizes, over, keepdims=1, noop_with_empty_axes=0
    )
    divisor = patch.add(
        "Max",
        greatest,
        patch.constant(np.array(SMALLEST, np.float32), "smallest"),
    )
    powers = patch.add(
        "Pow",
        patch.add("Div", sizes, divisor),
        patch.constant(np.array(p, np.float32), "p"),
    )
    total = patch.add(
        "ReduceSum", powers, over, keepdims=1, noop_with_empty_axes=0
    )
    root = patch.add(
        "Pow", total, patch.constant(np.array(1 / p, np.float32), "root")
    )
    return patch.add("Mul", root, greatest)


def _taps(
    patch: Patch,
    value: ir.Value,
    window: WindowAttributes,
    x: tuple[int, ...],
    y: tuple[int, ...],
) -> ir.Value:
    """Return [taps, N, C, ..]: the element at each tap of the kernel, 0 outside."""
    rank = len(window.kernel)
    pads = pads_to_the_end(window, x[2:], y[2:])
    if any(pads):
        zero = patch.constant(np.zeros((), np.float32), "padding")
        value = patch.add(
            "Pad",
            value,
            patch.axes((0, 0, *pads[:rank], 0, 0, *pads[rank:]), "pads"),
            zero,
            mode="constant",
        )
    axes = patch.axes(list(range(2, rank + 2)), "spatial")
    steps = patch.axes(window.strides, "strides")
    parts = []
    for place in np.ndindex(*window.kernel):
        starts = [
            tap * step
            for tap, step in zip(place, window.dilations, strict=True)
        ]
        ends = [
            start + (size - 1) * step + 1
            for start, size, step in zip(
                starts, y[2:], window.strides, strict=True
            )
        ]
        elements = patch.add(
            "Slice",
            value,
            patch.axes(starts, "starts"),
            patch.axes(ends, "ends"),
            axes,
            steps,
        )
        parts.append(
            patch.add(
                "Reshape", elements, patch.axes((1, *y), "one"), allowzero=0
            )
        )
    return parts[0] if len(parts) == 1 else patch.add("Concat", *parts, axis=0)


def _total(
    patch: Patch,
    value: ir.Value,
    window: WindowAttributes,
    x: tuple[int, ...],
    y: tuple[int, ...],
) -> ir.Value:
    """Sum over each window by a depthwise convolution with ones."""
    channels, pads = x[1], pads_to_the_end(window, x[2:], y[2:])
    ones = patch.constant(
        np.ones((channels, 1, *window.kernel), np.float32), "ones"
    )
    total = patch.add(
        "Conv",
        value,
        ones,
        patch.constant(np.zeros(channels, np.float32), "bias"),
    )
    maker = total.producer()
    assert maker is not None
    set_attributes(
        maker,
        kernel_shape=window.kernel,
        strides=window.strides,
        dilations=window.dilations,
        pads=pads,
    )
    set_attributes(maker, group=channels)
    return total
