"""Lowers MaxUnpool to a choice in each window, or to a ScatterElements."""

from __future__ import annotations

import math

import numpy as np
import onnx_ir as ir

from mrt.graph.patch import Patch
from mrt.graph.values import (
    constant,
    constant_integers,
    first,
    int_attribute,
    ints_attribute,
    nodes,
    operand,
    producer,
    shape_of,
)
from mrt.rewrite.constants.fold_constants import LARGEST_RESULT
from mrt.rewrite.linear.conv_pool_attributes import WindowAttributes, window_of


def lower_max_unpool(model: ir.Model) -> int:
    """MaxUnpool(x, indices of a MaxPool) -> Where(ArgMax of each window = tap, x, 0).

    MaxUnpool(x, constant indices) -> ScatterElements into zeros. Applies to windows
    without padding that lie side by side and cover the result, and to constant indices.
    Equal; of equal numbers the first counts as the greatest, as in onnxruntime.
    """
    count = sum(_unpool(node) for node in nodes(model, "MaxUnpool"))
    for node in nodes(model, "MaxPool"):
        if (
            len(node.outputs) == 2
            and not node.outputs[1].uses()
            and not node.outputs[1].is_graph_output()
        ):
            node.resize_outputs(1)
            count += 1
    return count


def _unpool(node: ir.Node) -> bool:
    places = operand(node, 1)
    if constant(places) is not None:
        return _scatter(node)
    pool = producer(places, "MaxPool")
    if pool is None or pool.outputs[1] is not places:
        return False
    window, x, y = window_of(pool), shape_of(first(pool)), shape_of(first(node))
    if (
        window is None
        or x is None
        or y is None
        or len(x) != 4
        or not _lies_side_by_side(window, x, y)
    ):
        return False
    if _result(node, x[:2], window.kernel, y) != x or int_attribute(
        pool, "storage_order", 0
    ):
        return False
    _choose(node, pool, window.kernel, y)
    return True


def _lies_side_by_side(
    window: WindowAttributes, x: tuple[int, ...], y: tuple[int, ...]
) -> bool:
    covered = all(
        size == count * kernel
        for size, count, kernel in zip(x[2:], y[2:], window.kernel, strict=True)
    )
    return (
        covered
        and window.strides == window.kernel
        and not any(window.pads)
        and set(window.dilations) == {1}
    )


def _result(
    node: ir.Node,
    outer: tuple[int, ...],
    kernel: tuple[int, ...],
    y: tuple[int, ...],
) -> tuple[int, ...] | None:
    """Return the shape of the node's result; None where it is not known."""
    if operand(node, 2) is not None:
        return constant_integers(operand(node, 2))
    return (
        (*outer, *_inferred(node, y))
        if ints_attribute(node, "kernel_shape") == kernel
        else None
    )


def _inferred(node: ir.Node, y: tuple[int, ...]) -> tuple[int, ...]:
    kernel = ints_attribute(node, "kernel_shape") or ()
    strides = ints_attribute(node, "strides") or (1,) * len(kernel)
    pads = ints_attribute(node, "pads") or (0, 0) * len(kernel)
    axes = zip(
        y[2:],
        kernel,
        strides,
        pads[: len(kernel)],
        pads[len(kernel) :],
        strict=True,
    )
    return tuple(
        (size - 1) * stride + extent - before - after
        for size, extent, stride, before, after in axes
    )


def _choose(
    node: ir.Node, pool: ir.Node, kernel: tuple[int, ...], y: tuple[int, ...]
) -> None:
    """Keep each element of x where its window had the maximum, and 0 elsewhere."""
    patch = Patch(node)
    is_maximum = _is_maximum(patch, first(pool), kernel, y)
    column = patch.axes((*y, 1), "single")
    values = patch.add("Reshape", first(node), column, allowzero=0)
    zero = patch.constant(np.zeros((), np.float32), "zero")
    chosen = patch.add("Where", is_maximum, values, zero)

    window_axes = patch.axes((*y, *kernel), "kernel")
    windows = patch.add("Reshape", chosen, window_axes, allowzero=0)
    interleaved = patch.add("Transpose", windows, perm=(0, 1, 2, 4, 3, 5))
    shape = (*y[:2], y[2] * kernel[0], y[3] * kernel[1])
    patch.output.shape = ir.Shape(shape)
    image_axes = patch.axes(shape, "image")
    patch.finish(patch.add("Reshape", interleaved, image_axes, allowzero=0))


def _is_maximum(
    patch: Patch, pooled: ir.Value, kernel: tuple[int, ...], y: tuple[int, ...]
) -> ir.Value:
    """A boolean [N, C, H, W, taps]: whether a tap is the first maximum of its window."""
    taps = math.prod(kernel)
    split_axes = patch.axes((*y[:2], y[2], kernel[0], y[3], kernel[1]), "apart")
    windows = patch.add("Reshape", pooled, split_axes, allowzero=0)
    windows = patch.add("Transpose", windows, perm=(0, 1, 2, 4, 3, 5))
    tap_axes = patch.axes((*y, taps), "windows")
    windows = patch.add("Reshape", windows, tap_axes, allowzero=0)
    best = patch.add("ArgMax", windows, axis=4, keepdims=1, select_last_index=0)
    indices = patch.constant(np.arange(taps, dtype=np.int64), "places")
    return patch.add("Equal", best, indices)


def _scatter(node: ir.Node) -> bool:
    """Place x by constant indices, which count in the shape that the window implies.

    A larger requested shape is filled up with zeros at the end of each axis.
    """
    places, y = constant(operand(node, 1)), shape_of(first(node))
    if places is None or y is None or not ints_attribute(node, "kernel_shape"):
        return False
    inferred = (*y[:2], *_inferred(node, y))
    requested = _requested(node, inferred)
    if requested is None or math.prod(requested) > LARGEST_RESULT:
        return False
    if not 0 <= places.min() <= places.max() < math.prod(inferred):
        return False
    patch = Patch(node)
    zeros = patch.constant(np.zeros(math.prod(inferred), np.float32), "zeros")
    row = patch.add(
        "Reshape", first(node), patch.axes((-1,), "row"), allowzero=0
    )
    indices = patch.constant(places.reshape(-1).astype(np.int64), "places")
    scattered = patch.add("ScatterElements", zeros, indices, row, axis=0)
    image_axes = patch.axes(inferred, "image")
    image = patch.add("Reshape", scattered, image_axes, allowzero=0)
    before = [0] * len(inferred)
    after = [
        more - size for more, size in zip(requested, inferred, strict=True)
    ]
    pads = patch.axes((*before, *after), "pads")
    patch.output.shape = ir.Shape(requested)
    patch.finish(patch.add("Pad", image, pads, mode="constant"))
    return True


def _requested(
    node: ir.Node, inferred: tuple[int, ...]
) -> tuple[int, ...] | None:
    """The result's shape; None where it is unknown or smaller than the inferred one."""
    if operand(node, 2) is None:
        return inferred
    requested = constant_integers(operand(node, 2))
    if requested is None or len(requested) != len(inferred):
        return None
    if any(more < size for more, size in zip(requested, inferred, strict=True)):
        return None
    return requested
