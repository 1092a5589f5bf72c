"""Sliding windows: made to divide exactly, by less padding or a cut, and how often each tap of one meets an input."""

from __future__ import annotations

import numpy as np

from mrt.exact.fixed_point import FloatArray
from mrt.quantize.builder import Handle
from mrt.quantize.context import LoweringContext

Pair = tuple[int, ...]


def fit_window(
    net: LoweringContext, value: Handle, extent: Pair, stride: Pair, pads: Pair
) -> tuple[Handle, Pair]:
    """An NHWC value and pads (top, bottom, left, right) for which (size + pads - extent) divides by the stride.

    `extent` is the dilated kernel, `pads` are ONNX's (top, left, bottom, right). The result has as many windows as before.
    """
    shape = net.builder.types[value].shape
    size, pad = list(shape), []
    for axis in (0, 1):
        before, after = pads[axis], pads[axis + 2]
        unused = (shape[axis + 1] + before + after - extent[axis]) % stride[axis]
        less = min(unused, after)
        size[axis + 1] -= unused - less
        pad += [before, after - less]
    if tuple(size) != shape:
        value = net.builder.emit("slice", value, start=(0,) * 4, size=tuple(size))
    return value, tuple(pad)


def tap_counts(
    taps: int, dilation: int, windows: int, stride: int, before: int, size: int
) -> FloatArray:
    """For each tap along one axis, how many of the windows have it inside 0..size-1 and not in the padding `before` or behind."""
    places = np.arange(windows) * stride + np.arange(taps)[:, None] * dilation - before
    inside = (places >= 0) & (places < size)
    return np.asarray(np.count_nonzero(inside, axis=1), np.float64)
