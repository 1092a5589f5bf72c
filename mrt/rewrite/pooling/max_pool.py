"""Lowers a MaxPool with ceil_mode to one with more padding at the end."""

from __future__ import annotations

import onnx_ir as ir

from mrt.graph.patch import set_attributes
from mrt.graph.values import first, int_attribute, nodes, shape_of
from mrt.rewrite.linear.conv_pool_attributes import WindowAttributes, window_of


def lower_max_pool(model: ir.Model) -> int:
    """MaxPool with ceil_mode 1 -> MaxPool with ceil_mode 0 and larger pads at the end.

    Equal: padding is never the maximum.
    """
    count = 0
    for node in nodes(model, "MaxPool"):
        window = window_of(node)
        x = shape_of(first(node))
        y = shape_of(node.outputs[0])
        if (
            not int_attribute(node, "ceil_mode", 0)
            or window is None
            or x is None
            or y is None
        ):
            continue
        set_attributes(
            node, ceil_mode=0, pads=pads_to_the_end(window, x[2:], y[2:])
        )
        count += 1
    return count


def pads_to_the_end(
    window: WindowAttributes, x: tuple[int, ...], y: tuple[int, ...]
) -> tuple[int, ...]:
    """Return the pads with which rounding down yields the sizes `y`.

    The last window must fit, and no further one.
    """
    spatial = len(x)
    begins, ends = window.pads[:spatial], window.pads[spatial:]
    lengths = [
        (out - 1) * s + e
        for out, s, e in zip(y, window.strides, window.extent, strict=True)
    ]
    needed = [
        length - size - begin
        for length, size, begin in zip(lengths, x, begins, strict=True)
    ]
    return (
        *begins,
        *(max(end, need) for end, need in zip(ends, needed, strict=True)),
    )
