"""Splits a sum of products too long to be proven in i32 into several provable sums.

The parts are added as they are if the proof allows it. Else each is first shifted right
by the same number of bits, rounding half up: with K parts the result is within K/2
steps of the new scale, which is 2^shift times coarser (SPEC section 5). A part may
itself count in steps of a power of two; then it is shifted left, or less far right.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from cvm.errors import Unproven
from mrt.quantize.builder import Handle, ProgramBuilder

MAX_PARTS = 4096

EmitPart = Callable[[int, int], Handle]
"""Emits the part of a sum over the terms [start, stop)."""


@dataclass(frozen=True)
class PartialSum:
    """An i32 value that counts in steps of 2^exponent."""

    value: Handle
    exponent: int = 0


def emit_in_parts(
    builder: ProgramBuilder, length: int, emit: EmitPart
) -> tuple[Handle, int]:
    """Emit a sum over `length` terms in as few parts as can be proven.

    Return the sum in steps of 2^shift, and the shift.
    """
    handles = provable_parts(length, emit)
    return add_parts(builder, [PartialSum(handle) for handle in handles])


def provable_parts(length: int, emit: EmitPart) -> list[Handle]:
    """Emit the parts of a sum over `length` terms: equally long, and as few as can be proven."""
    count = 1
    while True:
        edges = [length * index // count for index in range(count + 1)]
        try:
            return [emit(start, stop) for start, stop in pairwise(edges)]
        except Unproven:
            if count >= min(length, MAX_PARTS):
                raise
        more = count + 1 if count < 16 else count * 5 // 4
        count = min(more, length)


def add_parts(
    builder: ProgramBuilder, parts: Sequence[PartialSum]
) -> tuple[Handle, int]:
    """Return the sum of the parts in steps of 2^shift, and the shift.

    It is the least shift at which every partial sum is proven.
    """
    for shift in range(32):
        try:
            addends = [
                _in_steps(builder, partial_sum, shift) for partial_sum in parts
            ]
            return _sum(addends, builder), shift
        except Unproven:
            continue
    raise Unproven(
        "add.fits", f"{len(parts)} parts do not fit i32 at any shift"
    )


def _in_steps(
    builder: ProgramBuilder, partial_sum: PartialSum, shift: int
) -> Handle:
    """Return a part in steps of 2^shift."""
    if partial_sum.exponent <= shift:
        return shifted_right(
            builder, partial_sum.value, shift - partial_sum.exponent
        )
    amount = _amount(builder, partial_sum.value, partial_sum.exponent - shift)
    return builder.emit("shift_left", partial_sum.value, amount)


def shifted_right(builder: ProgramBuilder, value: Handle, shift: int) -> Handle:
    """Return value / 2^shift, rounded half up."""
    if shift == 0:
        return value
    amount = _amount(builder, value, shift)
    return builder.emit("shift_right", value, amount, round=True)


def _amount(builder: ProgramBuilder, value: Handle, shift: int) -> Handle:
    """Return a shift as a constant of the value's rank."""
    rank = builder.types[value].rank
    return builder.constant(np.full([1] * rank, shift, np.int32))


def _sum(addends: Sequence[Handle], builder: ProgramBuilder) -> Handle:
    total = addends[0]
    for addend in addends[1:]:
        total = builder.emit("add", total, addend)
    return total


def slice_last_axis(
    builder: ProgramBuilder, value: Handle, start: int, stop: int
) -> Handle:
    """Return the entries [start, stop) of the last axis: an operand for one part of a sum."""
    *outer, length = builder.types[value].shape
    if stop - start == length:
        return value
    begin = (*[0] * len(outer), start)
    return builder.emit(
        "slice", value, start=begin, size=(*outer, stop - start)
    )
