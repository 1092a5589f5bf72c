"""Making a sliding window divide exactly, as the machine demands: pad less at the end, or cut what no window reaches."""

from __future__ import annotations

from mrt.quantize.builder import Handle
from mrt.quantize.lowering import Lowering

Pair = tuple[int, ...]


def fit_window(net: Lowering, value: Handle, extent: Pair, stride: Pair, pads: Pair) -> tuple[Handle, Pair]:
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
