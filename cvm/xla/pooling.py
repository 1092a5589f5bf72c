"""Windows of an image, each to one value."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from cvm.program import IntArray
from cvm.xla.arrays import Operand, centred, floor_shift, saturated, wide

Sizes = tuple[int, ...]


def max_pool2d(
    x: Operand,
    *,
    kernel: Sizes,
    stride: Sizes,
    pad: Sizes,
) -> Array:
    """Places beside x hold the least value of its dtype, which no place of x is below."""
    least = jnp.asarray(np.iinfo(x.dtype).min, x.dtype)
    greatest: Array = lax.reduce_window(
        jnp.asarray(x), least, lax.max, *_windows(kernel, stride, pad)
    )
    return greatest


def avg_pool2d(
    x: Operand,
    *,
    kernel: Sizes,
    stride: Sizes,
    pad: Sizes,
    input_zp: int,
    output_zp: int,
) -> Array:
    """The sum times a reciprocal of 31 bits, shifted (TOSA's)."""
    sums = lax.reduce_window(
        centred(x, input_zp),
        np.int32(0),
        lax.add,
        *_windows(kernel, stride, pad),
    )
    counts = _counts(x.shape, kernel, stride, pad)
    bits = np.searchsorted(2 ** np.arange(25), counts)
    multiplier = ((2**30 + 1) << bits) // counts
    mean = floor_shift(wide(sums) * multiplier, 30 + bits)
    dtype = {1: "i8", 2: "i16"}[x.dtype.itemsize]
    return saturated(mean + output_zp, dtype)


def _windows(
    kernel: Sizes, stride: Sizes, pad: Sizes
) -> tuple[Sizes, Sizes, list[tuple[int, int]]]:
    """Sizes, steps and edges along all four axes."""
    top, bottom, left, right = pad
    edges = [(0, 0), (top, bottom), (left, right), (0, 0)]
    return (1, *kernel, 1), (1, *stride, 1), edges


def _counts(
    shape: Sizes,
    kernel: Sizes,
    stride: Sizes,
    pad: Sizes,
) -> IntArray:
    """How many places of each window are in x: `[1,OH,OW,1]`."""
    along = []
    for axis in (0, 1):
        before, after = pad[2 * axis : 2 * axis + 2]
        size = shape[1 + axis]
        last = size + after - kernel[axis]
        starts = np.arange(-before, last + 1, stride[axis])
        stops = np.minimum(starts + kernel[axis], size)
        along.append(stops - np.maximum(starts, 0))
    counts: IntArray = np.multiply.outer(*along)[None, :, :, None]
    return counts
