"""Windows of an image as indices along one axis, and padding."""

from __future__ import annotations

import numpy as np

from cvm.export.onnx.graph import OnnxGraph
from cvm.program import IntArray


def windows(size: int, kernel: int, stride: int, dilation: int = 1) -> IntArray:
    """For each window along an axis the indices of its places."""
    count = (size - (kernel - 1) * dilation - 1) // stride + 1
    starts = np.arange(count, dtype=np.int64)[:, np.newaxis] * stride
    taps = np.arange(kernel, dtype=np.int64) * dilation
    places: IntArray = starts + taps
    return places


def padded(graph: OnnxGraph, x: str, pads: tuple[int, ...], value: int) -> str:
    """x with all places before, then all behind, as ONNX lists them. Pad has no kernel for i16."""
    if not any(pads):
        return x
    x_dtype = graph.dtypes[x]
    dtype = "i32" if x_dtype == "i16" else x_dtype
    operands = graph.integers(pads), graph.number(value, dtype)
    return graph.cast(
        graph.node("Pad", graph.cast(x, dtype), *operands), x_dtype
    )
