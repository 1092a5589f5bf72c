"""Element by element, integer by integer: add to isqrt. All work in int64, where none of them can overflow."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from cvm.errors import Trap
from cvm.program import IntArray, TensorType, arithmetic
from cvm.program.bounds import Bounds
from cvm.reference.call import Call
from cvm.reference.elementwise import check_binary, check_unary, spread_bounds
from cvm.reference.scale import check_zero_point

BITS = {"i8": 8, "i16": 16, "i32": 32}
POWERS_OF_TWO = 2 ** np.arange(32, dtype=np.int64)


def _corners(
    call: Call, operation: Callable[[IntArray, IntArray], IntArray]
) -> Bounds:
    """Exact where `operation` is monotone in each operand while the other one stays: an end lies at a pair of ends."""
    x, y = spread_bounds(call)
    corners = np.stack(
        [operation(a, b) for a in (x.lo, x.hi) for b in (y.lo, y.hi)]
    )
    return Bounds(corners.min(axis=0), corners.max(axis=0))


def check_add(call: Call) -> TensorType:
    """Two operands of i32."""
    return check_binary(call, "i32")


def bound_add(call: Call) -> Bounds:
    """End plus end."""
    x, y = spread_bounds(call)
    return Bounds(x.lo + y.lo, x.hi + y.hi)


def add(x: IntArray, y: IntArray) -> IntArray:
    """x + y."""
    return x.astype(np.int64) + y


def check_sub(call: Call) -> TensorType:
    """Two operands of i32."""
    return check_binary(call, "i32")


def bound_sub(call: Call) -> Bounds:
    """Each end minus the opposite one."""
    x, y = spread_bounds(call)
    return Bounds(x.lo - y.hi, x.hi - y.lo)


def sub(x: IntArray, y: IntArray) -> IntArray:
    """x - y."""
    return x.astype(np.int64) - y


def check_mul(call: Call) -> TensorType:
    """Equal i8, i16 or i32 operands, result i32; only i32 products are shifted."""
    result = TensorType("i32", check_binary(call, "i8", "i16", "i32").shape)
    shift = call.integer("shift")
    most = 63 if call.types[0].dtype == "i32" else 0
    call.require(
        0 <= shift <= most,
        "C3",
        f"shift {shift} of {call.types[0].dtype} is outside 0..{most}",
    )
    return result


def bound_mul(call: Call) -> Bounds:
    """The products of the ends, shifted like the values: rounding keeps their order."""
    return _corners(
        call,
        lambda x, y: arithmetic.shift_half_up(x * y, call.integer("shift")),
    )


def mul(x: IntArray, y: IntArray, *, shift: int) -> IntArray:
    """floor(x * y / 2^shift + 1/2): half rounds up."""
    return arithmetic.shift_half_up(x.astype(np.int64) * y, shift)


def check_intdiv(call: Call) -> TensorType:
    """Two operands of i32; C3 (no division by 0) is proven, not checked."""
    return check_binary(call, "i32")


def bound_intdiv(call: Call) -> Bounds:
    """The quotients of the ends: y keeps its sign, so the quotient is monotone in each operand."""
    y = call.bounds[1]
    without_zero = bool(((y.lo > 0) | (y.hi < 0)).all())
    call.prove(
        without_zero,
        "C3",
        f"the divisor's interval {y.min}..{y.max} contains 0 at some index of the last axis",
    )
    return _corners(call, arithmetic.divide_toward_zero)


def intdiv(x: IntArray, y: IntArray) -> IntArray:
    """x / y, truncated toward zero."""
    if not y.all():
        raise Trap("division by 0")
    return arithmetic.divide_toward_zero(x.astype(np.int64), y.astype(np.int64))


def check_maximum(call: Call) -> TensorType:
    """Two operands of i32."""
    return check_binary(call, "i32")


def bound_maximum(call: Call) -> Bounds:
    """The greater of the ends."""
    x, y = spread_bounds(call)
    return Bounds(np.maximum(x.lo, y.lo), np.maximum(x.hi, y.hi))


def maximum(x: IntArray, y: IntArray) -> IntArray:
    """The greater."""
    return np.maximum(x, y)


def check_minimum(call: Call) -> TensorType:
    """Two operands of i32."""
    return check_binary(call, "i32")


def bound_minimum(call: Call) -> Bounds:
    """The lesser of the ends."""
    x, y = spread_bounds(call)
    return Bounds(np.minimum(x.lo, y.lo), np.minimum(x.hi, y.hi))


def minimum(x: IntArray, y: IntArray) -> IntArray:
    """The lesser."""
    return np.minimum(x, y)


def check_abs(call: Call) -> TensorType:
    """One operand of i32."""
    return check_unary(call, "i32")


def bound_abs(call: Call) -> Bounds:
    """The absolute ends, and 0 where the interval holds it. The absolute value of -2^31 does not fit."""
    x = call.bounds[0]
    return Bounds(
        np.maximum(np.maximum(x.lo, -x.hi), 0), np.maximum(-x.lo, x.hi)
    )


def abs_(x: IntArray) -> IntArray:
    """The absolute value."""
    return np.abs(x.astype(np.int64))


def check_negate(call: Call) -> TensorType:
    """i8, i16 or i32; zero points for i8 only."""
    result = check_unary(call, "i8", "i16", "i32")
    check_zero_point(call, "C2", result.dtype, call.integer("input_zp"))
    check_zero_point(call, "C3", result.dtype, call.integer("output_zp"))
    return result


def bound_negate(call: Call) -> Bounds:
    """The ends change places. -2^15 of i16 and -2^31 of i32 do not fit."""
    x = call.bounds[0]
    offset = call.integer("input_zp") + call.integer("output_zp")
    negated = Bounds(offset - x.hi, offset - x.lo)
    if call.types[0].dtype != "i8":
        return negated
    return Bounds(
        arithmetic.saturate(negated.lo, "i8"),
        arithmetic.saturate(negated.hi, "i8"),
    )


def negate(x: IntArray, *, input_zp: int, output_zp: int) -> IntArray:
    """input_zp - x + output_zp; i8 saturates."""
    negative = input_zp - x.astype(np.int64) + output_zp
    return (
        arithmetic.saturate(negative, "i8") if x.dtype == np.int8 else negative
    )


def check_shift_left(call: Call) -> TensorType:
    """Equal i8, i16 or i32 operands; C3 (s lies in 0..bits-1) is proven, not checked."""
    return check_binary(call, "i8", "i16", "i32")


def bound_shift_left(call: Call) -> Bounds:
    """The shifted ends: at most 2^62 in size."""
    _prove_shift(call)
    return _corners(call, np.left_shift)


def shift_left(x: IntArray, s: IntArray) -> IntArray:
    """x * 2^s."""
    _trap_shift(s)
    return np.left_shift(x.astype(np.int64), s)


def check_shift_right(call: Call) -> TensorType:
    """Equal i8, i16 or i32 operands; C3 (s lies in 0..bits-1) is proven, not checked."""
    return check_binary(call, "i8", "i16", "i32")


def bound_shift_right(call: Call) -> Bounds:
    """The shifted ends: a shift brings x nearer to 0 or -1, and rounding keeps the order."""
    _prove_shift(call)
    return _corners(
        call,
        lambda x, s: _shift_right(x, s, round=bool(call.attributes["round"])),
    )


def shift_right(x: IntArray, s: IntArray, *, round: bool) -> IntArray:
    """floor(x / 2^s); with `round` floor(x / 2^s + 1/2), which is the same as adding bit s-1 after the shift."""
    _trap_shift(s)
    return _shift_right(x.astype(np.int64), s, round=round)


def _shift_right(x: IntArray, s: IntArray, *, round: bool) -> IntArray:
    return arithmetic.shift_half_up(x, s) if round else np.right_shift(x, s)


def _prove_shift(call: Call) -> None:
    s, most = call.bounds[1], BITS[call.types[1].dtype] - 1
    call.prove(
        s.min >= 0 and s.max <= most,
        "C3",
        f"the interval of s, {s.min}..{s.max}, is not inside 0..{most}",
    )


def _trap_shift(s: IntArray) -> None:
    least, most, bits = int(s.min()), int(s.max()), 8 * s.dtype.itemsize
    if least < 0 or most >= bits:
        raise Trap(
            f"shift by {least if least < 0 else most} is outside 0..{bits - 1}"
        )


def check_clz(call: Call) -> TensorType:
    """One operand of i32."""
    return check_unary(call, "i32")


def bound_clz(call: Call) -> Bounds:
    """Falls from 32 at 0, and is 0 for every negative x."""
    x = call.bounds[0]
    return Bounds(
        np.where(x.lo < 0, 0, clz(x.hi)),
        np.where(x.hi < 0, 0, clz(np.maximum(x.lo, 0))),
    )


def clz(x: IntArray) -> IntArray:
    """The number of leading zeros of the 32 bits of x: 32 for 0, 0 for a negative x."""
    length = np.searchsorted(POWERS_OF_TWO, x, side="right")
    return np.where(x < 0, 0, 32 - length)


def check_isqrt(call: Call) -> TensorType:
    """One operand of i32; C2 (x >= 0) is proven, not checked."""
    return check_unary(call, "i32")


def bound_isqrt(call: Call) -> Bounds:
    """The roots of the ends."""
    x = call.bounds[0]
    call.prove(
        x.min >= 0,
        "C2",
        f"the interval of x, {x.min}..{x.max}, holds negative values",
    )
    return Bounds(isqrt(x.lo), isqrt(x.hi))


def isqrt(x: IntArray) -> IntArray:
    """The greatest r with r * r <= x, found bit by bit from the highest."""
    if int(x.min()) < 0:
        raise Trap(f"square root of {int(x.min())}")
    root = np.zeros(x.shape, np.int64)
    for bit in range(15, -1, -1):
        larger = root + (1 << bit)
        root = np.where(larger * larger <= x, larger, root)
    return root
