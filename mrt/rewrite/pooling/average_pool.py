"""Lowers an AveragePool with a constant divisor to a depthwise convolution."""

from __future__ import annotations

import math

import numpy as np
import onnx_ir as ir

from mrt.graph.patch import Patch, set_attributes
from mrt.graph.values import first, int_attribute, nodes, shape_of
from mrt.rewrite.linear.conv_pool_attributes import WindowAttributes, window_of
from mrt.rewrite.pooling.max_pool import pads_to_the_end


def lower_average_pool(model: ir.Model) -> int:
    """AveragePool -> a depthwise Conv with weights 1/(kh*kw), or without ceil_mode.

    The Conv applies when padding is counted or absent. With ceil_mode, a window that
    extends beyond the end counts only elements inside the input and its pads. There,
    pads that are counted become a Pad in front, and the excess becomes pads that are
    not counted. Equal but for the rounding of 1/(kh*kw).
    """
    count = 0
    for node in nodes(model, "AveragePool"):
        window = window_of(node)
        x = shape_of(first(node))
        y = shape_of(node.outputs[0])
        if window is None or x is None or y is None:
            continue
        pads = pads_to_the_end(window, x[2:], y[2:])
        if pads == window.pads and (
            int_attribute(node, "count_include_pad", 0) or not any(pads)
        ):
            _to_convolution(node, window, channels=x[1])
        elif int_attribute(node, "ceil_mode", 0):
            _drop_ceil_mode(node, window, pads)
        else:
            continue
        count += 1
    return count


def _to_convolution(
    node: ir.Node, window: WindowAttributes, *, channels: int
) -> None:
    patch = Patch(node)
    mean = np.full(
        (channels, 1, *window.kernel),
        1.0 / math.prod(window.kernel),
        np.float32,
    )
    value = patch.add(
        "Conv", first(node), patch.constant(mean, "weight"), patch.constant(np.zeros(channels, np.float32), "bias"),
        kernel_shape=window.kernel, strides=window.strides, dilations=window.dilations, pads=window.pads,
        group=channels,
    )  # fmt: skip
    patch.finish(value)


def _drop_ceil_mode(
    node: ir.Node, window: WindowAttributes, pads: tuple[int, ...]
) -> None:
    set_attributes(node, ceil_mode=0)
    if not int_attribute(node, "count_include_pad", 0) or not any(window.pads):
        set_attributes(node, pads=pads, count_include_pad=0)
        return
    patch = Patch(node)
    spatial = len(window.kernel)
    zero = patch.constant(np.zeros((), np.float32), "padding")
    counted = patch.axes(
        (0, 0, *window.pads[:spatial], 0, 0, *window.pads[spatial:]), "pads"
    )
    node.replace_input_with(
        0, patch.add("Pad", first(node), counted, zero, mode="constant")
    )
    overhang = [
        end - window_pad
        for end, window_pad in zip(
            pads[spatial:], window.pads[spatial:], strict=True
        )
    ]
    set_attributes(node, pads=(*[0] * spatial, *overhang), count_include_pad=0)
