"""Comparisons and logic: bool results, whose interval is 0..1."""

from __future__ import annotations

import numpy as np

from cvm.program import IntArray, TensorType
from cvm.program.bounds import Bounds
from cvm.reference.call import Call
from cvm.reference.elementwise import (
    check_binary,
    check_broadcast,
    check_dtype,
    check_unary,
    spread_bounds,
)


def _bounds(always: IntArray, possible: IntArray) -> Bounds:
    return Bounds(always.astype(np.int64), possible.astype(np.int64))


def check_equal(call: Call) -> TensorType:
    """Two operands of i32."""
    return TensorType("bool", check_binary(call, "i32").shape)


def bound_equal(call: Call) -> Bounds:
    """Always, if both can only be the same integer; never, if no integer lies in both intervals."""
    x, y = spread_bounds(call)
    always = (x.lo == x.hi) & (y.lo == y.hi) & (x.lo == y.lo)
    return _bounds(always, (x.lo <= y.hi) & (y.lo <= x.hi))


def equal(x: IntArray, y: IntArray) -> IntArray:
    """x = y."""
    return np.equal(x, y)


def check_greater(call: Call) -> TensorType:
    """Two operands of i32."""
    return TensorType("bool", check_binary(call, "i32").shape)


def bound_greater(call: Call) -> Bounds:
    """Always, if the least x exceeds the greatest y; possibly, if the greatest x exceeds the least y."""
    x, y = spread_bounds(call)
    return _bounds(x.lo > y.hi, x.hi > y.lo)


def greater(x: IntArray, y: IntArray) -> IntArray:
    """x > y."""
    return np.greater(x, y)


def check_greater_equal(call: Call) -> TensorType:
    """Two operands of i32."""
    return TensorType("bool", check_binary(call, "i32").shape)


def bound_greater_equal(call: Call) -> Bounds:
    """As for greater, equals included."""
    x, y = spread_bounds(call)
    return _bounds(x.lo >= y.hi, x.hi >= y.lo)


def greater_equal(x: IntArray, y: IntArray) -> IntArray:
    """x >= y."""
    return np.greater_equal(x, y)


def check_logical_and(call: Call) -> TensorType:
    """Two operands of bool."""
    return check_binary(call, "bool")


def bound_logical_and(call: Call) -> Bounds:
    """The lesser of the ends."""
    x, y = spread_bounds(call)
    return Bounds(np.minimum(x.lo, y.lo), np.minimum(x.hi, y.hi))


def logical_and(x: IntArray, y: IntArray) -> IntArray:
    """Both."""
    return np.logical_and(x, y)


def check_logical_or(call: Call) -> TensorType:
    """Two operands of bool."""
    return check_binary(call, "bool")


def bound_logical_or(call: Call) -> Bounds:
    """The greater of the ends."""
    x, y = spread_bounds(call)
    return Bounds(np.maximum(x.lo, y.lo), np.maximum(x.hi, y.hi))


def logical_or(x: IntArray, y: IntArray) -> IntArray:
    """One of them, or both."""
    return np.logical_or(x, y)


def check_logical_not(call: Call) -> TensorType:
    """One operand of bool."""
    return check_unary(call, "bool")


def bound_logical_not(call: Call) -> Bounds:
    """The ends change places."""
    return Bounds(1 - call.bounds[0].hi, 1 - call.bounds[0].lo)


def logical_not(x: IntArray) -> IntArray:
    """The other one."""
    return np.logical_not(x)


def check_select(call: Call) -> TensorType:
    """A bool condition, and x and y of one dtype."""
    condition = call.types[0]
    call.require(
        condition.dtype == "bool",
        "C1",
        f"condition is {condition.dtype}; expected bool",
    )
    dtype = check_dtype(
        call, "C2", call.types[1:], ("bool", "i8", "i16", "i32")
    )
    return TensorType(dtype, check_broadcast(call, "C3"))


def bound_select(call: Call) -> Bounds:
    """That of x where the condition always holds, of y where it never does, the hull of both elsewhere."""
    condition, x, y = spread_bounds(call)
    either, always, never = x.union(y), condition.lo == 1, condition.hi == 0
    lo = np.where(always, x.lo, np.where(never, y.lo, either.lo))
    hi = np.where(always, x.hi, np.where(never, y.hi, either.hi))
    return Bounds(lo, hi)


def select(condition: IntArray, x: IntArray, y: IntArray) -> IntArray:
    """x where the condition holds, y elsewhere."""
    return np.where(condition, x, y)
