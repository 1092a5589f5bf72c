"""Element by element: arithmetic, scale, lookup. TOSA's operator where it is exact, arith on 64 bits elsewhere."""

from __future__ import annotations

import numpy as np

from cvm.export.mlir.instruction import MlirInstruction
from cvm.export.mlir.text import STORAGE, MlirValue, Text
from cvm.program import DTYPE_RANGES, IntArray

OVERFLOW = "#arith.overflow<none>"
NOT_ABOVE = "7 : i64"  # arith's predicate ule
FLAGGED = {"addi", "subi", "muli"}
HALF_UP = "#tosa.rounding_mode<SINGLE_ROUND>"
ROOT_BITS = range(15, -1, -1)  # of the root of a number of 31 bits


def unary(text: Text, operator: str, x: MlirValue, element: str) -> MlirValue:
    """An operation of arith on one tensor."""
    return text.operation(f"arith.{operator}", [x], element, x.shape)


def binary(text: Text, operator: str, x: MlirValue, y: MlirValue) -> MlirValue:
    """An operation of arith on two tensors of one shape."""
    wraps = {"overflowFlags": OVERFLOW} if operator in FLAGGED else {}
    name = f"arith.{operator}"
    return text.operation(name, [x, y], x.element, x.shape, **wraps)


def widened(text: Text, x: MlirValue, dtype: str, element: str) -> MlirValue:
    """The same integers in more bits."""
    if x.element == element:
        return x
    unsigned = dtype in ("u8", "bool")
    return unary(text, "extui" if unsigned else "extsi", x, element)


def spread(text: Text, x: MlirValue, shape: tuple[int, ...]) -> MlirValue:
    """x repeated along its axes of one element."""
    if x.shape == shape:
        return x
    multiples = [
        most if size == 1 else 1
        for size, most in zip(x.shape, shape, strict=True)
    ]
    return text.shaped("tosa.tile", x, [multiples], shape)


def rescale(instruction: MlirInstruction) -> MlirValue:
    """TOSA's where the scaled integers fit 32 bits before they saturate; 64 bits elsewhere."""
    if not _fits(instruction):
        return _rescaled_wide(instruction)
    text, x = instruction.text, instruction.operand(0)
    points = (
        text.one(_signed(instruction), x.element),
        text.one(instruction.integer("output_zp"), instruction.element),
    )
    return instruction.write(
        "tosa.rescale",
        x,
        instruction.operand(1),
        instruction.operand(2),
        *points,
        input_unsigned=_boolean(instruction.types[0].dtype == "u8"),
        output_unsigned="false",
        per_channel=_boolean(instruction.types[1].elements > 1),
        rounding_mode=HALF_UP,
        scale32="true",
    )


def _signed(instruction: MlirInstruction) -> int:
    """The input's zero point; that of u8 as the signed byte with the same bits."""
    point = instruction.integer("input_zp")
    if instruction.types[0].dtype == "u8" and point > 127:
        return point - 256
    return point


def _boolean(value: bool) -> str:
    return "true" if value else "false"


def _fits(instruction: MlirInstruction) -> bool:
    """Whether every scaled integer fits 32 bits, and every x the range that TOSA has for its shift."""
    multiplier, shift = instruction.constant(1), instruction.constant(2)
    point = instruction.integer("input_zp")
    interval = [end - point for end in instruction.intervals[0]]
    return all(
        -(2 ** (int(by) - 1)) <= end < 2 ** (int(by) - 1)
        and abs(end) * int(factor) >> int(by) < 2**31 - 256
        for factor, by in zip(multiplier, shift, strict=True)
        for end in interval
    )


def _rescaled_wide(instruction: MlirInstruction) -> MlirValue:
    """The product is below 2^62 in size, half of 2^shift at most 2^61."""
    text, dtype = instruction.text, instruction.result.dtype
    multiplier, shift = (
        instruction.constant(index).astype(np.int64) for index in (1, 2)
    )
    x = widened(text, instruction.operand(0), instruction.types[0].dtype, "i64")
    x = _with(text, "subi", x, np.array(instruction.integer("input_zp")))
    x = _with(text, "muli", x, multiplier)
    x = _with(text, "addi", x, np.left_shift(np.int64(1), shift - 1))
    x = _with(text, "shrsi", x, shift)
    x = _with(text, "addi", x, np.array(instruction.integer("output_zp")))
    least, most = DTYPE_RANGES[dtype]
    x = _with(text, "maxsi", x, np.array(least))
    x = _with(text, "minsi", x, np.array(most))
    return unary(text, "trunci", x, instruction.element)


def _with(
    text: Text, operator: str, x: MlirValue, numbers: IntArray
) -> MlirValue:
    """An operation of arith with numbers that stand for all of x or for its channels."""
    if numbers.size == 1:
        numbers = numbers.reshape(())
    repeated = np.broadcast_to(numbers, x.shape).astype(STORAGE[x.element])
    return binary(text, operator, x, text.constant(repeated))


def clamp(instruction: MlirInstruction) -> MlirValue:
    """TOSA has 8 and 16 bits; 32 are its maximum and its minimum."""
    x = instruction.operand(0)
    least = instruction.integer("min")
    most = instruction.integer("max")
    if x.element != "i32":
        return instruction.write(
            "tosa.clamp",
            x,
            min_val=f"{least} : {x.element}",
            max_val=f"{most} : {x.element}",
        )
    ones = [1] * len(x.shape)
    bounds = [instruction.text.splat(end, "i32", ones) for end in (least, most)]
    above = instruction.write("tosa.maximum", x, bounds[0])
    return instruction.write("tosa.minimum", above, bounds[1])


def cast(instruction: MlirInstruction) -> MlirValue:
    """Of bytes without sign, and to them, by arith: to TOSA all bytes have one."""
    x = instruction.operand(0)
    before = instruction.types[0].dtype
    after = instruction.result.dtype
    if "u8" not in (before, after) or after == "bool":
        return instruction.write("tosa.cast", x)
    text = instruction.text
    if x.element == instruction.element:
        return x
    if x.element in ("i16", "i32") and instruction.element == "i8":
        return unary(text, "trunci", x, instruction.element)
    return widened(text, x, before, instruction.element)


def mul(instruction: MlirInstruction) -> MlirValue:
    """TOSA's for whole products; those that are shifted in 64 bits."""
    x, y, shift = *instruction.all, instruction.integer("shift")
    text = instruction.text
    if not shift:
        return instruction.write("tosa.mul", x, y, text.one(0, "i8"))
    wide = [
        widened(
            text, spread(text, side, instruction.result.shape), "i32", "i64"
        )
        for side in (x, y)
    ]
    product = binary(text, "muli", *wide)
    if shift > 1:
        product = _with(text, "shrsi", product, np.array(shift - 1))
    product = _with(text, "addi", product, np.array(1))
    half = _with(text, "shrsi", product, np.array(1))
    return unary(text, "trunci", half, "i32")


def negate(instruction: MlirInstruction) -> MlirValue:
    """TOSA's, with zero points as operands."""
    x, text = instruction.operand(0), instruction.text
    points = [
        text.one(instruction.integer(name), x.element)
        for name in ("input_zp", "output_zp")
    ]
    return instruction.write("tosa.negate", x, *points)


def shift_right(instruction: MlirInstruction) -> MlirValue:
    """TOSA's has the same two roundings."""
    rounds = _boolean(bool(instruction.integer("round")))
    operator = "tosa.arithmetic_right_shift"
    return instruction.write(operator, *instruction.all, round=rounds)


def isqrt(instruction: MlirInstruction) -> MlirValue:
    """Bit by bit from the highest: a bit stays if the square is not above x. Squares below 2^32 compare without sign."""
    text, x = instruction.text, instruction.operand(0)
    root = text.splat(0, "i32", x.shape)
    for bit in ROOT_BITS:
        tried = _with(text, "ori", root, np.array(1 << bit))
        square = binary(text, "muli", tried, tried)
        fits = text.operation(
            "arith.cmpi",
            [square, x],
            "i1",
            x.shape,
            predicate=NOT_ABOVE,
        )
        operands = [fits, tried, root]
        root = text.operation("arith.select", operands, "i32", x.shape)
    return root


def table(instruction: MlirInstruction) -> MlirValue:
    """A gather of the entry at x less its dtype's least value."""
    text, x = instruction.text, instruction.operand(0)
    dtype, entries = instruction.types[0].dtype, instruction.constant(1)
    count = instruction.types[0].elements
    places = widened(text, x, dtype, "i32")
    places = _with(text, "subi", places, np.array(DTYPE_RANGES[dtype][0]))
    rows = text.constant(entries.reshape(1, -1, 1))
    indices = text.reshape(places, (1, count))
    looked_up = text.operation(
        "tosa.gather", [rows, indices], instruction.element, (1, count, 1)
    )
    return text.reshape(looked_up, instruction.result.shape)


def interpolate(instruction: MlirInstruction) -> MlirValue:
    """TOSA's table of 16 bits; entries of 8 bits are widened here."""
    points = instruction.text.constant(instruction.constant(1).astype(np.int16))
    return instruction.write("tosa.table", instruction.operand(0), points)
