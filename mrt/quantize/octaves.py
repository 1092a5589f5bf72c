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

from dataclasses import dataclass

import numpy as np

from cvm.program import IntArray
from mrt.quantize.builder import Handle
from mrt.quantize.roots import Arithmetic, excess_bits

CODES = 65536
"""Codes that i16 has: code 0 is the integer -32768."""

FIRST = -32768
MOST_BITS = 15


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
        octave = np.maximum(codes // half - 1, 0)
        return np.asarray((codes - octave * half) << octave, np.int64)

    def encode(
        self, a: Arithmetic, number: Handle, octaves: Handle | None = None
    ) -> Handle:
        """Write the code of number * 2^octaves in i16, for 0 <= number < 2^31.

        Where `octaves` is above 0, the number must have `bits` bits or more.
        """
        excess = excess_bits(a, number, self.bits)
        top = a.clamp(a.right_by(number, excess), 0, 2**self.bits)
        if octaves is not None:
            excess = a.add(excess, octaves)
        code = a.add(a.left(excess, self.bits - 1), top)
        code = a.clamp(code, 0, self.count - 1)
        shifted = a.add_number(code, FIRST)
        return a.builder.emit("cast", shifted, dtype="i16")
