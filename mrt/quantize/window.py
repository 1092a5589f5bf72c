"""Makes sliding windows cover their input exactly, and counts where their taps meet it.

An input row that no window covers is left out by less padding or by a slice.
"""

from __future__ import annotations

import numpy as np

from mrt.exact.fixed_point import FloatArray
from mrt.quantize.builder import Handle
from mrt.quantize.context import LoweringContext

Pair = tuple[int, ...]


def fit_window(
    net: LoweringContext, value: Handle, extent: Pair, stride: Pair, pads: Pair
) -> tuple[Handle, Pair]:
    """Return an NHWC value and pads (top, bottom, left, right) that windows cover exactly.

    The stride then divides size + pads - extent. `extent` is the dilated kernel, `pads`
    are ONNX's (top, left, bottom, right). The number of windows stays the same.
    """
    shape = net.builder.types[value].shape
    size, pad = list(shape), []
    for axis in (0, 1):
        before, after = pads[axis], pads[axis + 2]
        unused = (shape[axis + 1] + before + after - extent[axis]) % stride[
            axis
        ]
        unused_padding = min(unused, after)
        size[axis + 1] -= unused - unused_padding
        pad += [before, after - unused_padding]
    if tuple(size) != shape:
        value = net.builder.emit(
            "slice", value, start=(0,) * 4, size=tuple(size)
        )
    return value, tuple(pad)


def tap_counts(
    taps: int, dilation: int, windows: int, stride: int, before: int, size: int
) -> FloatArray:
    """Count for each tap along one axis the windows in which it lies on the input.

    In the other windows it lies on the padding.
    """
    places = (
        np.arange(windows) * stride
        + np.arange(taps)[:, None] * dilation
        - before
    )
    inside = (places >= 0) & (places < size)
    return np.asarray(np.count_nonzero(inside, axis=1), np.float64)
