"""MAC decomposition: a sum of products too long to be proven in i32 becomes several that can be, added up.

The parts are added as they are if the proof allows, else each is first shifted right by the same number of bits, rounding half
up: with K parts the result is within K/2 steps of the new, 2^shift times coarser, scale (SPEC section 5). A part may itself
count in steps of a power of two; then it is shifted left, or less far right.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from cvm.errors import Unproven
from mrt.quantize.builder import Handle, ProgramBuilder

MAX_PARTS = 4096

Emit = Callable[[int, int], Handle]  # emits the part of the reduction in [start, stop)


@dataclass(frozen=True)
class Part:
    """An i32 value that stands for value * 2^exponent."""

    value: Handle
    exponent: int = 0


def emit_in_parts(
    builder: ProgramBuilder, length: int, emit: Emit
) -> tuple[Handle, int]:
    """Emit a reduction over `length` terms, in as few equal parts as can be proven; returns the sum and its shift."""
    return add_parts(builder, [Part(value) for value in provable_parts(length, emit)])


def provable_parts(length: int, emit: Emit) -> list[Handle]:
    """A reduction over `length` terms in as few equal parts as can be proven, each of them."""
    count = 1
    while True:
        edges = [length * index // count for index in range(count + 1)]
        try:
            return [emit(start, stop) for start, stop in pairwise(edges)]
        except Unproven:
            if count >= min(length, MAX_PARTS):
                raise
            count = min(count + 1 if count < 16 else count * 5 // 4, length)


def add_parts(builder: ProgramBuilder, parts: Sequence[Part]) -> tuple[Handle, int]:
    """The sum of the parts in steps of 2^shift, the least shift at which every partial sum is proven; and the shift."""
    for shift in range(32):
        try:
            return _sum(
                [_in_steps(builder, part, shift) for part in parts], builder
            ), shift
        except Unproven:
            continue
    raise Unproven("add.fits", f"{len(parts)} parts do not fit i32 at any shift")


def _in_steps(builder: ProgramBuilder, part: Part, shift: int) -> Handle:
    """A part in steps of 2^shift."""
    if part.exponent <= shift:
        return shifted_right(builder, part.value, shift - part.exponent)
    return builder.emit(
        "shift_left", part.value, _amount(builder, part.value, part.exponent - shift)
    )


def shifted_right(builder: ProgramBuilder, value: Handle, shift: int) -> Handle:
    """value / 2^shift, rounding half up."""
    if shift == 0:
        return value
    return builder.emit(
        "shift_right", value, _amount(builder, value, shift), round=True
    )


def _amount(builder: ProgramBuilder, value: Handle, shift: int) -> Handle:
    return builder.constant(np.full([1] * builder.types[value].rank, shift, np.int32))


def _sum(parts: Sequence[Handle], builder: ProgramBuilder) -> Handle:
    total = parts[0]
    for part in parts[1:]:
        total = builder.emit("add", total, part)
    return total
