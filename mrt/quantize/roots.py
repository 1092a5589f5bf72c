"""Square roots and reciprocals in i32 to 13 bits and more, of small tensors: one number for a row, a channel, an image.

What is divided by is first brought to a number of known length, so that 13 bits do not depend on how great it is. The
proof knows no relation between values: a shift to the right by a computed amount is always proven, one to the left never.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mrt.quantize.builder import Handle, ProgramBuilder

ROOT_BITS = 3  # below the point, that `fine_root` adds
INVERSE_BITS = 30  # an inverse is 2^30 over the number
MANTISSA_BITS = 15


@dataclass(frozen=True)
class Arithmetic:
    """Instructions on i32 tensors of one rank, with constants written as plain numbers."""

    builder: ProgramBuilder
    rank: int

    def number(self, value: int) -> Handle:
        """A constant for every element."""
        return self.builder.constant(np.full([1] * self.rank, value, np.int32))

    def add(self, x: Handle, y: Handle | None = None, *, number: int = 0) -> Handle:
        """x + y, or x + number."""
        return self.builder.emit("add", x, self.number(number) if y is None else y)

    def sub(self, x: Handle, y: Handle) -> Handle:
        """x - y."""
        return self.builder.emit("sub", x, y)

    def mul(self, x: Handle, y: Handle, shift: int = 0) -> Handle:
        """x * y / 2^shift, half up."""
        return self.builder.emit("mul", x, y, shift=shift)

    def left(self, x: Handle, bits: int) -> Handle:
        """x * 2^bits."""
        return self.builder.emit("shift_left", x, self.number(bits)) if bits else x

    def right(self, x: Handle, bits: int | Handle, *, computed: bool = False) -> Handle:
        """x / 2^bits, half up; `computed` says that bits is a tensor."""
        return self.builder.emit(
            "shift_right", x, bits if computed else self.number(bits), round=True
        )

    def clamp(self, x: Handle, low: int, high: int) -> Handle:
        """x held to an interval."""
        return self.builder.emit("clamp", x, min=low, max=high)


def fine_root(a: Arithmetic, x: Handle, bits: int = ROOT_BITS) -> Handle:
    """sqrt(x) * 2^bits for 0 <= x < 2^31: isqrt and, from what it leaves, (x - r^2) / (2r + 1) of the next step."""
    root = a.builder.emit("isqrt", x)
    rest = a.clamp(a.sub(x, a.mul(root, root)), 0, 2 * 46340)
    step = a.add(a.left(root, 1), number=1)
    parts = a.builder.emit("intdiv", a.add(a.left(rest, bits), root), step)
    return a.add(a.left(root, bits), a.clamp(parts, 0, 2**bits))


def inverse(a: Arithmetic, x: Handle) -> Handle:
    """2^30 / x, to the nearest, for x > 0."""
    half = a.builder.emit("shift_right", x, a.number(1), round=False)
    return a.builder.emit("intdiv", a.add(half, number=2**INVERSE_BITS), x)


def excess_bits(a: Arithmetic, x: Handle, keep: int) -> Handle:
    """By how many bits x >= 0 is longer than `keep` bits: 0 or more."""
    length = a.sub(a.number(32), a.builder.emit("clz", x))
    return a.clamp(a.add(length, number=-keep), 0, 31 - keep)
