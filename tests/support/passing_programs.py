"""Programs whose sums pass from one step of their plan to the next."""

from __future__ import annotations

import numpy as np

from cvm.program import Program
from tests.support.epilogue_programs import Draft, factors

CHANNELS = 24
SHIFTS = (29, 36)


def residual(
    size: int = 6, stride: int = 1, *, read_twice: bool = False
) -> Program:
    """A block whose shortcut is a convolution, as where a residual network halves its image."""
    d = Draft(CHANNELS, size, size)
    sums = d.conv(("input", 0), CHANNELS, 40, 1, -7, stride)
    mine = d.rescale(sums, *factors(d.random, 40, SHIFTS), (0, 0), "i32")
    other = d.conv(("input", 0), CHANNELS, 40, 3, -7, stride)
    total = d.add("add", mine, other)
    factor = np.array([2**30]), np.array([43])
    last = d.rescale(total, *factor, (0, 3), "i8")
    if read_twice:
        last = d.add(
            "concat", last, d.rescale(mine, *factor, (0, 3), "i8"), axis=3
        )
    d.add("reverse", last, axis=2)
    return d.finish()


def depthwise() -> Program:
    """A convolution of each channel adds what another one passes, which no engine computes within it."""
    d = Draft(CHANNELS, 6, 0)
    sums = d.conv(("input", 0), CHANNELS, CHANNELS, 1, -7)
    mine = d.rescale(sums, *factors(d.random, CHANNELS, SHIFTS), (0, 0), "i32")
    other = d.conv(("input", 0), CHANNELS, CHANNELS, 3, -7, groups=CHANNELS)
    total = d.add("add", mine, other)
    factor = np.array([2**30]), np.array([43])
    last = d.rescale(total, *factor, (0, 3), "i8")
    d.add("reverse", last, axis=2)
    return d.finish()
