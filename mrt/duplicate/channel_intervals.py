"""Computes the interval of each channel of a float value for any input, by interval arithmetic."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt
import onnx_ir as ir

from mrt.exact.ordered_sum import row_sums
from mrt.graph.notes import picture_layout_of
from mrt.graph.values import (
    constant,
    int_attribute,
    ints_attribute,
    operand,
    scalar,
)

Floats = npt.NDArray[np.float64]
ChannelInterval = tuple[Floats, Floats]
"""The low and the high bounds of each index of axis 1, or one of each for all indices."""

_ROUNDING = 2.0**-18
"""A typical error of a sum in float32, relative to the magnitudes that are added: 64 roundings.

The bounds hold for real numbers without it. It keeps most channels that rounding alone
lifts above 0 from counting as dead.
"""


def channel_intervals(graph: ir.Graph) -> dict[str, ChannelInterval]:
    """Return the intervals of the values, by name; some values have none."""
    intervals: dict[str, ChannelInterval] = {}
    for value in graph.inputs:
        if picture_layout_of(value) is not None:
            intervals[str(value.name)] = np.zeros(1), np.full(1, 255.0)
    for node in graph:
        interval = _of_node(node, intervals)
        if interval is not None:
            intervals[str(node.outputs[0].name)] = interval
    return intervals


def _of_node(
    node: ir.Node, intervals: Mapping[str, ChannelInterval]
) -> ChannelInterval | None:
    if node.op_type in ("Relu", "Clip"):
        return _of_clip(node, intervals)
    if node.op_type == "Concat":
        return _of_all(node.inputs, intervals)
    if node.op_type == "Transpose":
        return _of_all(node.inputs[:1], intervals)
    interval = _of_value(node.inputs[0], intervals) if node.inputs else None
    if interval is None:
        return None
    if node.op_type == "MaxPool":
        return interval
    if node.op_type == "Conv":
        return _of_convolution(node, interval)
    return None


def _of_clip(
    node: ir.Node, intervals: Mapping[str, ChannelInterval]
) -> ChannelInterval:
    bounds = clip_interval(node)
    low = np.full(1, -math.inf)
    high = np.full(1, math.inf)
    interval = _of_value(node.inputs[0], intervals)
    if interval is not None:
        low, high = interval
    return np.clip(low, *bounds), np.clip(high, *bounds)


def _of_all(
    values: Sequence[ir.Value | None],
    intervals: Mapping[str, ChannelInterval],
) -> ChannelInterval | None:
    """Return the hull for all channels of some values; None if one value has no interval."""
    lows, highs = [], []
    for value in values:
        interval = _of_value(value, intervals)
        if interval is None:
            return None
        lows.append(interval[0].min())
        highs.append(interval[1].max())
    return np.array([min(lows)]), np.array([max(highs)])


def clip_interval(node: ir.Node) -> tuple[float, float]:
    """Return the interval that a Relu or Clip lets pass."""
    if node.op_type == "Relu":
        return 0.0, math.inf
    low = scalar(operand(node, 1))
    high = scalar(operand(node, 2))
    if low is None:
        low = -math.inf
    if high is None:
        high = math.inf
    return low, high


def _of_value(
    value: ir.Value | None, intervals: Mapping[str, ChannelInterval]
) -> ChannelInterval | None:
    array = constant(value)
    if array is not None and array.size:
        low, high = float(array.min()), float(array.max())
        return np.full(1, low), np.full(1, high)
    if value is None:
        return None
    return intervals.get(str(value.name))


def _of_convolution(
    node: ir.Node, interval: ChannelInterval
) -> ChannelInterval | None:
    """Sum the products with the bounds of the interval, and widen by a typical error of float32."""
    weights = constant(node.inputs[1])
    bias = constant(operand(node, 2))
    if weights is None or not np.isfinite(interval).all():
        return None
    low, high = interval
    if any(ints_attribute(node, "pads") or ()):
        low, high = np.minimum(low, 0), np.maximum(high, 0)
    groups = int_attribute(node, "group", 1)
    input_low = _by_output(low, groups, weights.shape)
    input_high = _by_output(high, groups, weights.shape)
    outputs, inputs = weights.shape[:2]
    taps = weights.astype(np.float64).reshape(outputs, inputs, -1)
    positive = row_sums(np.maximum(taps, 0))
    negative = row_sums(np.minimum(taps, 0))
    added = np.zeros(len(weights))
    if bias is not None:
        added = bias.astype(np.float64)
    output_low = row_sums(positive * input_low + negative * input_high) + added
    output_high = row_sums(positive * input_high + negative * input_low) + added
    magnitudes = np.maximum(np.abs(input_low), np.abs(input_high))
    products = row_sums((positive - negative) * magnitudes)
    rounding = _ROUNDING * (products + np.abs(added))
    error = np.where(products > 0, rounding, 0.0)
    return output_low - error, output_high + error


def _by_output(numbers: Floats, groups: int, shape: tuple[int, ...]) -> Floats:
    """Return numbers [C] or [1] as [O,C/groups], for weights of this shape."""
    outputs, inputs = shape[:2]
    by_group = np.broadcast_to(numbers, groups * inputs).reshape(groups, inputs)
    return np.repeat(by_group, outputs // groups, axis=0)
