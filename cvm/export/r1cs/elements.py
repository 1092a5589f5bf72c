"""Rows of instructions that go element by element."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from cvm.export.r1cs import division, lookup
from cvm.export.r1cs.instruction import (
    Interval,
    NoRows,
    SecretInstruction,
    Writer,
)
from cvm.export.r1cs.secret import Secret
from cvm.export.r1cs.system import in_interval, not_negative, positive_part
from cvm.program import DTYPE_RANGES, IntArray

SEGMENT_BITS = 7
SEGMENT = (
    1 << SEGMENT_BITS
)  # integers from one point of interpolate to the next


def rescale(instruction: SecretInstruction) -> Secret:
    """One division, by a power of two from which that of the multiplier is divided out."""
    multiplier, shift = instruction.constant(1), instruction.constant(2)
    zeros = np.minimum(_trailing_zeros(multiplier), shift - 1)
    slope, bits = multiplier >> zeros, shift - zeros
    offset = (1 << (bits - 1)) - slope * instruction.integer("input_zp")
    zero_point = instruction.integer("output_zp")
    low, high = DTYPE_RANGES[instruction.result.dtype]
    limits = (low - zero_point, high - zero_point)
    return _divide(instruction, slope, offset, bits, limits).plus(zero_point)


def clamp(instruction: SecretInstruction) -> Secret:
    """A division by 1 that is clipped."""
    limits = instruction.integer("min"), instruction.integer("max")
    return _divide(instruction, 1, 0, 0, limits)


def negate(instruction: SecretInstruction) -> Secret:
    """A sign; i8 saturates."""
    offset = instruction.integer("input_zp") + instruction.integer("output_zp")
    limits = DTYPE_RANGES[instruction.result.dtype]
    return _divide(instruction, -1, offset, 0, limits)


def shift_right(instruction: SecretInstruction) -> Secret:
    """A division; rounding adds half."""
    bits = instruction.constant(1)
    half = np.where(bits > 0, 1 << np.maximum(bits - 1, 0), 0)
    offset = half if instruction.integer("round") else 0
    return _divide(instruction, 1, offset, bits, (-(2**31), 2**31 - 1))


def shift_left(instruction: SecretInstruction) -> Secret:
    """A product with a power of two."""
    return instruction.operand(0).times(1 << instruction.constant(1))


def mul(instruction: SecretInstruction) -> Secret:
    """A row for two secrets, none for one; the shift is a division."""
    is_known = [array is not None for array in instruction.constants]
    x, y = instruction.operand(0), instruction.operand(1)
    if any(is_known):
        factors = instruction.constant(is_known.index(True))
        product = (y if is_known[0] else x).times(
            np.broadcast_to(factors, instruction.result.shape)
        )
    else:
        product = instruction.system.product(x, y)
    bits = instruction.integer("shift")
    if not bits:
        return product
    products = [
        a * b
        for a in instruction.intervals[0]
        for b in instruction.intervals[1]
    ]
    half = 1 << (bits - 1)
    limits = (-(2**31), 2**31 - 1)
    return _divide_secret(
        instruction,
        product,
        (min(products), max(products)),
        1,
        half,
        bits,
        limits,
    )


def intdiv(instruction: SecretInstruction) -> Secret:
    """|x| = |y| * q + r with 0 <= r < |y|, and the sign: the divisor has one sign, as its interval shows."""
    system = instruction.system
    x, y = instruction.operand(0), instruction.operand(1)
    (low, high), (least, most) = instruction.intervals
    if most < 0:
        x, y = x.times(-1), y.times(-1)
        (low, high), (least, most) = (-high, -low), (-most, -least)
    if least <= 0:
        raise NoRows(f"its divisor may be {least} and {most}")
    greatest = max(-low, high)
    is_positive = not_negative(system, x, low, high)
    sign = is_positive.times(2).minus(1)
    size = system.product(sign, x)
    quotient = system.new(size.values // y.values)
    in_interval(system, quotient, 0, greatest // least)
    rest = size.minus(system.product(y, quotient))
    in_interval(system, rest, 0, most - 1)
    in_interval(system, y.minus(1).minus(rest), 0, most - 1)
    return system.product(sign, quotient)


def maximum(instruction: SecretInstruction) -> Secret:
    """y, and the excess of x over it."""
    x, y = instruction.operand(0), instruction.operand(1)
    low, high = _difference(instruction)
    over = positive_part(instruction.system, x.minus(y), low, high)
    return y.plus(over)


def minimum(instruction: SecretInstruction) -> Secret:
    """x, less its excess over y."""
    x, y = instruction.operand(0), instruction.operand(1)
    low, high = _difference(instruction)
    over = positive_part(instruction.system, x.minus(y), low, high)
    return x.minus(over)


def absolute(instruction: SecretInstruction) -> Secret:
    """Twice the positive part, without x."""
    x = instruction.operand(0)
    over = positive_part(instruction.system, x, *instruction.intervals[0])
    return over.times(2).minus(x)


def greater(instruction: SecretInstruction) -> Secret:
    """Whether x - y - 1 is not negative."""
    x, y = instruction.operand(0), instruction.operand(1)
    low, high = _difference(instruction)
    above = x.minus(y).minus(1)
    return not_negative(instruction.system, above, low - 1, high - 1)


def greater_equal(instruction: SecretInstruction) -> Secret:
    """Whether x - y is not negative."""
    x, y = instruction.operand(0), instruction.operand(1)
    return not_negative(
        instruction.system, x.minus(y), *_difference(instruction)
    )


def equal(instruction: SecretInstruction) -> Secret:
    """At least, without greater."""
    return greater_equal(instruction).minus(greater(instruction))


def select(instruction: SecretInstruction) -> Secret:
    """y, and the difference where the condition holds."""
    condition, x, y = (instruction.operand(index) for index in range(3))
    return y.plus(instruction.system.product(condition, x.minus(y)))


def logical_and(instruction: SecretInstruction) -> Secret:
    """A product of bits."""
    x, y = instruction.operand(0), instruction.operand(1)
    return instruction.system.product(x, y)


def logical_or(instruction: SecretInstruction) -> Secret:
    """The sum without the product."""
    x, y = instruction.operand(0), instruction.operand(1)
    return x.plus(y).minus(instruction.system.product(x, y))


def logical_not(instruction: SecretInstruction) -> Secret:
    """1 - x."""
    return instruction.operand(0).times(-1).plus(1)


def cast(instruction: SecretInstruction) -> Secret:
    """The same integer; to bool, 1 where it is above 0 or below."""
    x, (low, high) = instruction.operand(0), instruction.intervals[0]
    if instruction.result.dtype != "bool":
        return x
    system = instruction.system
    above = not_negative(system, x.minus(1), low - 1, high - 1)
    below = not_negative(system, x.times(-1).minus(1), -high - 1, -low - 1)
    return above.plus(below)


def table(instruction: SecretInstruction) -> Secret:
    """An index with the few bits of the proven interval."""
    low, high = instruction.intervals[0]
    count = max((high - low).bit_length(), 1)
    if count > lookup.MOST_BITS:
        raise NoRows(
            f"its index has {count} bits, more than {lookup.MOST_BITS}"
        )
    entries = instruction.constant(1)
    first = DTYPE_RANGES[instruction.dtypes[0]][0]
    places = np.minimum(low - first + np.arange(2**count), len(entries) - 1)
    x = instruction.operand(0).flat()
    tables = np.broadcast_to(entries[places], (len(x.constants), len(places)))
    index = x.minus(low)
    result = lookup.looked_up(instruction.system, index, count, tables)
    return result.reshaped(instruction.result.shape)


def interpolate(instruction: SecretInstruction) -> Secret:
    """Two look-ups by the high bits, of a line's start and of its rise, and a product with the low bits."""
    low, high = ((end + 32768) // SEGMENT for end in instruction.intervals[0])
    count = max((high - low).bit_length(), 1)
    system, x = instruction.system, instruction.operand(0).flat()
    place = x.plus(32768 - SEGMENT * low)
    bits = system.is_natural(place, count + SEGMENT_BITS)
    points = instruction.constant(1)
    lines = np.minimum(low + np.arange(2**count), len(points) - 2)
    starts, rises = (
        lookup.picked(
            system,
            bits.at((..., slice(SEGMENT_BITS, None))),
            np.broadcast_to(entries, (len(x.constants), len(lines))),
        )
        for entries in (points[lines], np.diff(points)[lines])
    )
    rest = bits.at((..., slice(0, SEGMENT_BITS)))
    steps = rest.times(1 << np.arange(SEGMENT_BITS)).total()
    risen = system.product(steps, rises)
    return starts.times(SEGMENT).plus(risen).reshaped(instruction.result.shape)


def add(instruction: SecretInstruction) -> Secret:
    """No row."""
    return instruction.operand(0).plus(instruction.operand(1))


def sub(instruction: SecretInstruction) -> Secret:
    """No row."""
    return instruction.operand(0).minus(instruction.operand(1))


def _difference(instruction: SecretInstruction) -> Interval:
    (a, b), (c, d) = instruction.intervals
    return a - d, b - c


def _trailing_zeros(numbers: IntArray) -> IntArray:
    """The trailing zeros of each number; 62 for 0."""
    lowest = numbers & -numbers
    counts = np.searchsorted(2 ** np.arange(62, dtype=np.int64), lowest)
    return np.where(numbers == 0, 62, counts)


Numbers = IntArray | int


def _divide(
    instruction: SecretInstruction,
    slope: Numbers,
    offset: Numbers,
    bits: Numbers,
    limits: Interval,
) -> Secret:
    """clip(floor((slope * x + offset) / 2^bits)) of the first operand; the numbers may differ by place."""
    x = instruction.operand(0)
    interval = instruction.intervals[0]
    return _divide_secret(instruction, x, interval, slope, offset, bits, limits)


def _divide_secret(
    instruction: SecretInstruction,
    x: Secret,
    interval: Interval,
    slope: Numbers,
    offset: Numbers,
    bits: Numbers,
    limits: Interval,
) -> Secret:
    shape = instruction.result.shape or (1,)  # multipliers have an axis
    columns = [
        np.broadcast_to(np.asarray(numbers, np.int64), shape).reshape(-1)
        for numbers in (slope, offset, bits)
    ]
    slopes, offsets, shifts = columns
    flat = x.flat()
    quotients = division.written(
        instruction.system, flat, interval, (slopes, offsets, shifts), limits
    )
    return quotients.reshaped(instruction.result.shape)


RULES: Mapping[str, Writer] = {
    "rescale": rescale,
    "clamp": clamp,
    "negate": negate,
    "shift_right": shift_right,
    "shift_left": shift_left,
    "mul": mul,
    "intdiv": intdiv,
    "maximum": maximum,
    "minimum": minimum,
    "abs": absolute,
    "greater": greater,
    "greater_equal": greater_equal,
    "equal": equal,
    "select": select,
    "logical_and": logical_and,
    "logical_or": logical_or,
    "logical_not": logical_not,
    "cast": cast,
    "table": table,
    "interpolate": interpolate,
    "add": add,
    "sub": sub,
}
