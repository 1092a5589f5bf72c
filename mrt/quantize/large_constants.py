"""Large constants of sums: 16 bits in the file, where the sum does not show it.

A sum counts in steps much finer than its result's, so its constants need i32. What is
computed reaches the sum from 8 or 16 bits; a large constant may do the same.
"""

from __future__ import annotations

import numpy as np

from cvm.program import DTYPE_RANGES, IntArray
from mrt.exact.fixed_point import usable_scale
from mrt.quantize.builder import Handle
from mrt.quantize.context import LoweringContext
from mrt.quantize.tensor import Tensor

MANY = 512
"""Elements from which on 16 bits save more than the rescale takes, 200 bytes at most."""

MOST = DTYPE_RANGES["i16"][1]


def emit_large(
    net: LoweringContext, integers: IntArray, scale: float, name: str
) -> Handle:
    """Return a constant of the sum `name` in i32, in steps of `scale`.

    It is stored in 16 bits and rescaled by a power of two, if such steps are no coarser
    than 2^-8 of those of the sum's own form of 8 bits.
    """
    greatest = net.ranges.of(name).magnitude
    finest = usable_scale(greatest / 127, net.options.scales) / 256
    ratio = 1
    while np.abs(_divided(integers, ratio)).max() > MOST:
        ratio *= 2
    if integers.size < MANY or ratio * scale > finest:
        return net.constant(integers.astype(np.int32))
    stored = net.constant(_divided(integers, ratio).astype(np.int16))
    layout = tuple(range(integers.ndim))
    tensor = Tensor(stored, np.array([ratio * scale]), 0, layout)
    return net.rescale(tensor, np.array([float(ratio)]), "i32", 0)


def _divided(integers: IntArray, ratio: int) -> IntArray:
    """Return the nearest integers, half up; the ratio is a power of two."""
    return (integers + ratio // 2) // ratio
