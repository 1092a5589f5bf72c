"""Octave codes: 16 bits for a number of 31 bits and more, with equal steps within each octave.

A function that is steep near 0, such as a logarithm or a root, needs the small numbers as
precisely as the great ones. 16 linear bits hold few octaves of them. An octave code has `bits`
bits of the number from its first 1 on, and the count e of bits behind these:

    code = e * 2^(bits - 1) + (number / 2^e, half up)

Codes rise with numbers, and a number below 2^bits is its own code. The number that a code stands
for is right to a part of 2^-bits: numbers between two codes are 2^e apart, and a number with
e > 0 is at least 2^(bits - 1 + e).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from cvm.program import IntArray
from mrt.quantize.builder import Handle
from mrt.quantize.roots import Arithmetic, excess_bits

GREATEST = np.uint64(2**63 - 1)

CODES = 65536
"""Codes that i16 has: code 0 is the integer -32768."""

FIRST = -32768
MOST_BITS = 15

MOST_LENGTH = 62
"""Bits of the greatest number that sums and products of codes have, so that i64 holds it: 2^-62 of it is 0."""

EXTRA_BITS = 15
"""Of small numbers: where 30 bits are too coarse, these are counted in steps 2^-15 of theirs."""


@dataclass(frozen=True)
class OctaveCode:
    """Codes with `bits` bits of a number, for numbers of at most `length` bits."""

    bits: int
    length: int

    @classmethod
    def finest(cls, length: int) -> OctaveCode:
        """Return the code with the most bits of numbers of `length` bits that fits 16 bits."""
        for bits in range(min(MOST_BITS, length), 0, -1):
            code = cls(bits, length)
            if code.count <= CODES:
                return code
        raise AssertionError(f"numbers of {length} bits have no octave code")

    @property
    def count(self) -> int:
        """How many codes there are; the last is for 2^length, to which a number may be rounded."""
        octaves = self.length - self.bits
        return ((octaves + 2) << (self.bits - 1)) + 1

    def numbers(self) -> IntArray:
        """Return the number that each integer of i16 stands for; the greatest for unused ones."""
        codes = np.arange(CODES).clip(0, self.count - 1)
        half = 1 << (self.bits - 1)
        exponent = np.maximum(codes // half - 1, 0)
        bits = (codes - exponent * half).astype(np.uint64)
        numbers = bits << exponent.astype(np.uint64)
        return np.asarray(numbers.clip(max=GREATEST), np.int64)

    def integers(self, numbers: IntArray) -> IntArray:
        """Return the integers of i16 of the codes of numbers from 0 to 2^length."""
        powers = np.int64(1) << np.arange(63, dtype=np.int64)
        lengths = np.searchsorted(powers, numbers, side="right")
        excess = np.maximum(lengths - self.bits, 0)
        top = (numbers + (1 << excess >> 1)) >> excess
        codes = (excess << (self.bits - 1)) + top
        return np.asarray(codes.clip(0, self.count - 1) + FIRST)

    def parts(self, a: Arithmetic, code: Handle) -> tuple[Handle, Handle]:
        """Write the `bits` bits of the number of a code and the count of bits behind these, both in i32."""
        half = self.bits - 1
        count = a.add_number(a.builder.emit("cast", code, dtype="i32"), -FIRST)
        row = a.floor_right(count, half)
        exponent = a.clamp(
            a.add_number(row, -1), 0, self.length - self.bits + 1
        )
        bits = a.sub(count, a.left(exponent, half))
        return a.clamp(bits, 0, 2**self.bits), exponent

    @property
    def spare(self) -> int:
        """By how many bits `full_parts` counts finer than the numbers of the codes."""
        return 30 - self.bits

    def full_parts(self, a: Arithmetic, code: Handle) -> tuple[Handle, Handle]:
        """Write the same of the number * 2^spare: it has MOST_BITS bits, unless it is 0, and then the count is 0."""
        bits, exponent = self.parts(a, code)
        finer = a.left(bits, self.spare)
        excess = excess_bits(a, finer, MOST_BITS)
        top = a.clamp(a.right_by(finer, excess), 0, 2**MOST_BITS)
        return top, a.add(exponent, excess)

    def encode(
        self, a: Arithmetic, number: Handle, exponent: Handle | None = None
    ) -> Handle:
        """Write the code of number * 2^exponent in i16, for 0 <= number < 2^31.

        Where `exponent` is above 0, the number must have `bits` bits or more.
        """
        excess = excess_bits(a, number, self.bits)
        top = a.clamp(a.right_by(number, excess), 0, 2**self.bits)
        if exponent is not None:
            excess = a.add(excess, exponent)
        code = a.add(a.left(excess, self.bits - 1), top)
        code = a.clamp(code, 0, self.count - 1)
        shifted = a.add_number(code, FIRST)
        return a.builder.emit("cast", shifted, dtype="i16")

    def encode_from(
        self, a: Arithmetic, number: Handle, exponent: Handle, dropped: int
    ) -> Handle:
        """Write the code of number * 2^(exponent - dropped), under the condition of `encode`."""
        if dropped:
            less = a.clamp(a.sub(a.number(dropped), exponent), 0, 31)
            number = a.right_by(number, less)
            exponent = a.clamp(a.add_number(exponent, -dropped), 0, MOST_LENGTH)
        return self.encode(a, number, exponent)


def finest_for(
    length: int, greatest: float, scale: float
) -> tuple[OctaveCode, int]:
    """Return the code for numbers of `length` bits at a scale up to a greatest real, and how many of the last bits it leaves out.

    Where the greatest real has more than MOST_LENGTH bits, the last of them are left out;
    greater reals are cut off.
    """
    _, bits = math.frexp(greatest / scale)
    used = max(min(length, bits), 1)
    dropped = max(used - MOST_LENGTH, 0)
    return OctaveCode.finest(used - dropped), dropped
