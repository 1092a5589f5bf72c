"""Square roots and reciprocals in i32, correct to 13 bits and more.

They are taken of small tensors: one number for a row, a channel, an image. A divisor is
first shifted to a number of known length, so that the 13 bits do not depend on its
size. The proof keeps no relation between two values: a shift to the right by a computed
amount is always proven, a shift to the left never.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mrt.quantize.builder import Handle, ProgramBuilder

ROOT_BITS = 3  # bits of a root after the point that `fine_root` adds
INVERSE_BITS = 30  # an inverse is 2^30 over the number
MANTISSA_BITS = 15
LEAST_MANTISSA: int = 2 ** (MANTISSA_BITS - 1)  # that has all of them
GREATEST_ROOT = 46340  # the integer part of sqrt(2^31 - 1)


@dataclass(frozen=True)
class Arithmetic:
    """Instructions on i32 tensors of one rank, with constants written as plain numbers."""

    builder: ProgramBuilder
    rank: int

    def number(self, value: int) -> Handle:
        """Return a constant for every element."""
        return self.builder.constant(np.full([1] * self.rank, value, np.int32))

    def add(self, x: Handle, y: Handle) -> Handle:
        """x + y."""
        return self.builder.emit("add", x, y)

    def add_number(self, x: Handle, number: int) -> Handle:
        """x + number."""
        return self.add(x, self.number(number))

    def sub(self, x: Handle, y: Handle) -> Handle:
        """x - y."""
        return self.builder.emit("sub", x, y)

    def mul(self, x: Handle, y: Handle, shift: int = 0) -> Handle:
        """x * y / 2^shift, half up."""
        return self.builder.emit("mul", x, y, shift=shift)

    def left(self, x: Handle, bits: int) -> Handle:
        """x * 2^bits."""
        if bits == 0:
            return x
        return self.builder.emit("shift_left", x, self.number(bits))

    def right(self, x: Handle, bits: int) -> Handle:
        """x / 2^bits, half up."""
        return self.right_by(x, self.number(bits))

    def right_by(self, x: Handle, bits: Handle) -> Handle:
        """x / 2^bits, half up, where `bits` is computed for each element."""
        return self.builder.emit("shift_right", x, bits, round=True)

    def floor_right(self, x: Handle, bits: int) -> Handle:
        """x / 2^bits, rounded down."""
        return self.builder.emit(
            "shift_right", x, self.number(bits), round=False
        )

    def clamp(self, x: Handle, low: int, high: int) -> Handle:
        """x, stopped at the bounds."""
        return self.builder.emit("clamp", x, min=low, max=high)


def fine_root(a: Arithmetic, x: Handle, bits: int = ROOT_BITS) -> Handle:
    """sqrt(x) * 2^bits for 0 <= x < 2^31.

    With r = isqrt(x), the root lies (x - r^2) / (2r + 1) of the way from r to r + 1.
    """
    root = a.builder.emit("isqrt", x)
    square = a.mul(root, root)
    remainder = a.clamp(a.sub(x, square), 0, 2 * GREATEST_ROOT)
    divisor = a.add_number(a.left(root, 1), 1)
    half_up = a.add(a.left(remainder, bits), root)
    fraction = a.builder.emit("intdiv", half_up, divisor)
    upper = a.left(root, bits)
    return a.add(upper, a.clamp(fraction, 0, 2**bits))


def inverse(a: Arithmetic, x: Handle) -> Handle:
    """2^30 / x to the nearest integer, for x > 0."""
    half = a.floor_right(x, 1)
    return a.builder.emit("intdiv", a.add_number(half, 2**INVERSE_BITS), x)


def excess_bits(a: Arithmetic, x: Handle, keep: int) -> Handle:
    """Return by how many bits x >= 0 is longer than `keep` bits; 0 if it is not longer."""
    word = a.number(32)
    length = a.sub(word, a.builder.emit("clz", x))
    return a.clamp(a.add_number(length, -keep), 0, 31 - keep)
