"""RESCALE: factors in the one form that programs have, and bytes without sign on either side."""

from __future__ import annotations

import numpy as np

from cvm.errors import BadInput
from cvm.program import IntArray
from cvm.tosa.importing.draft import DraftValue, constant, filled
from cvm.tosa.importing.reading import TosaReading
from cvm.tosa.schema import SINGLE_ROUND

LEAST, MOST_SHIFT = (
    2**30,
    62,
)  # a multiplier is at least that, or its shift this


def rescale(reading: TosaReading) -> DraftValue:
    """One rescale. To bytes without sign, one to 16 bits, whose integers then stop at 0 and 255."""
    _require_same_meaning(reading)
    multiplier, shift = factors_of(reading.constant(1), reading.constant(2))
    point, after = reading.one(3), reading.one(4)
    if reading.integer("input_unsigned"):
        point %= 256
    operands = (reading.x, constant(multiplier), constant(shift))
    dtype = reading.declared.dtype.replace("INT", "i")
    if not reading.integer("output_unsigned"):
        return reading.draft.add(
            "rescale", *operands, input_zp=point, output_zp=after, dtype=dtype
        )
    scaled = reading.draft.add(
        "rescale", *operands, input_zp=point, output_zp=0, dtype="i16"
    )
    wide = reading.draft.add("cast", scaled, dtype="i32")
    zero = filled(after % 256, "i32", reading.x.type.rank)
    moved = reading.draft.add("add", wide, zero)
    stopped = reading.draft.add("clamp", moved, min=0, max=255)
    return reading.draft.add("cast", stopped, dtype="u8")


def _require_same_meaning(reading: TosaReading) -> None:
    """What a rescale here does not mean, and what TOSA itself forbids."""
    wide = reading.operator.attributes.get("scale32", False)
    if reading.integer("rounding_mode") != SINGLE_ROUND:
        raise BadInput("only SINGLE_ROUND is here")
    expected = "i32" if wide else "i16"
    if reading.values[1].type.dtype != expected:
        raise BadInput(f"scale32={bool(wide)} has multipliers of {expected}")
    channels = (
        reading.x.type.shape[-1:] if reading.integer("per_channel") else (1,)
    )
    for index in (1, 2):
        shape = reading.values[index].type.shape
        if shape != channels:
            raise BadInput(
                f"{reading.name(index)} has the shape {list(shape)}; expected {list(channels)}"
            )
    signs = (
        reading.integer("input_unsigned"),
        reading.integer("output_unsigned"),
    )
    _require_signs(reading, *signs)


def _require_signs(reading: TosaReading, before: int, after: int) -> None:
    """Bytes without sign go to and come from 8 and 16 bits with one."""
    x, y = reading.x.type.dtype, reading.declared.dtype
    if before and after:
        raise BadInput("input and output are both without sign")
    if (before or after) and "i32" in (x, y.replace("INT", "i")):
        raise BadInput("32 bits do not go with a side without sign")
    if before and x != "u8":
        raise BadInput(f"its x is {x}, which elsewhere has a sign")
    if not before and x == "u8":
        raise BadInput("its x is without sign elsewhere")
    if after and y != "INT8":
        raise BadInput(f"{y} without sign is not here")


def factors_of(
    multiplier: IntArray, shift: IntArray
) -> tuple[IntArray, IntArray]:
    """The same factors in the one form: doubled, with their shift one more, until the multiplier is large or the shift 62."""
    m, s = multiplier.astype(np.int64), shift.astype(np.int64)
    if (m < 0).any() or (s < 2).any() or (s > MOST_SHIFT).any():
        raise BadInput(
            "every multiplier must be 0 or more, and every shift 2..62"
        )
    for _ in range(MOST_SHIFT):
        small = (m < LEAST) & (s < MOST_SHIFT)
        m, s = np.where(small, 2 * m, m), np.where(small, s + 1, s)
    return m.astype(np.int32), s.astype(np.int8)
