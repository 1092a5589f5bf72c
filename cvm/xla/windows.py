"""The windows of an image, as slices of it."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
from jax import Array

MOST_SLICES = 64  # beyond, compiling takes longer than gathering saves


def patches(
    x: Array,
    kernel: tuple[int, ...],
    stride: tuple[int, ...],
    dilation: tuple[int, ...],
) -> Array:
    """The window at each output place: `[N,OH,OW,KH*KW,C]` of `x[N,H,W,C]`."""
    rows, columns = (
        _starts(x.shape[1 + axis], kernel[axis], stride[axis], dilation[axis])
        for axis in (0, 1)
    )
    taps = kernel[0] * kernel[1]
    n, channels = x.shape[0], x.shape[3]
    shape = (n, len(rows), len(columns), taps, channels)
    if taps > MOST_SLICES:
        down = rows[:, None] + np.arange(kernel[0]) * dilation[0]
        across = columns[:, None] + np.arange(kernel[1]) * dilation[1]
        gathered = x.take(down, axis=1, mode="clip")
        gathered = gathered.take(across, axis=3, mode="clip")
        return gathered.transpose(0, 1, 3, 2, 4, 5).reshape(shape)
    heights, widths = _span(rows), _span(columns)
    slices = [
        x[
            :,
            p * dilation[0] : p * dilation[0] + heights : stride[0],
            q * dilation[1] : q * dilation[1] + widths : stride[1],
        ]
        for p in range(kernel[0])
        for q in range(kernel[1])
    ]
    return jnp.concatenate(slices, axis=-1).reshape(shape)


def _starts(
    size: int, kernel: int, stride: int, dilation: int
) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """The first place of each window."""
    return np.arange(0, size - (kernel - 1) * dilation, stride)


def _span(starts: np.ndarray[tuple[int], np.dtype[np.int64]]) -> int:
    """From the first start to the last, inclusive."""
    return int(starts[-1]) + 1
