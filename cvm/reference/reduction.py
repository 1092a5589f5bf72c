"""Along one axis: sums, extremes, where the greatest is, and the sorted order."""

from __future__ import annotations

import numpy as np

from cvm.program import IntArray, TensorType
from cvm.program.bounds import Bounds, full
from cvm.reference.call import Call
from cvm.reference.elementwise import check_dtype


def _check_axis(call: Call) -> int:
    (x,), axis = call.types, call.integer("axis")
    call.require(
        0 <= axis < x.rank,
        "C2",
        f"axis {axis} of {x}; expected 0 <= axis < {x.rank}",
    )
    return axis


def _check_reduce(call: Call, *allowed: str) -> TensorType:
    """The reduced axis stays, with size 1."""
    dtype = check_dtype(call, "C1", call.types, allowed)
    axis, shape = _check_axis(call), call.types[0].shape
    return TensorType(dtype, (*shape[:axis], 1, *shape[axis + 1 :]))


def _reduces_last(call: Call) -> bool:
    return call.integer("axis") == call.types[0].rank - 1


def check_reduce_sum(call: Call) -> TensorType:
    """i32."""
    return _check_reduce(call, "i32")


def bound_reduce_sum(call: Call) -> Bounds:
    """Each element's interval is first widened to hold 0: so no order and no part of the sum can leave the bound."""
    x, length = call.bounds[0], call.types[0].shape[call.integer("axis")]
    lo, hi = np.minimum(x.lo, 0), np.maximum(x.hi, 0)
    if _reduces_last(call) and len(lo) == length:
        return Bounds(lo.sum(keepdims=True), hi.sum(keepdims=True))
    return Bounds(lo * length, hi * length)


def reduce_sum(x: IntArray, *, axis: int) -> IntArray:
    """The sum."""
    return np.asarray(x.sum(axis=axis, keepdims=True, dtype=np.int64))


def check_reduce_max(call: Call) -> TensorType:
    """i8, i16 or i32."""
    return _check_reduce(call, "i8", "i16", "i32")


def bound_reduce_max(call: Call) -> Bounds:
    """The greatest of the ends over the last axis; unchanged over any other."""
    x = call.bounds[0]
    return (
        Bounds(x.lo.max(keepdims=True), x.hi.max(keepdims=True))
        if _reduces_last(call)
        else x
    )


def reduce_max(x: IntArray, *, axis: int) -> IntArray:
    """The greatest."""
    return np.asarray(x.max(axis=axis, keepdims=True))


def check_reduce_min(call: Call) -> TensorType:
    """i8, i16 or i32."""
    return _check_reduce(call, "i8", "i16", "i32")


def bound_reduce_min(call: Call) -> Bounds:
    """The least of the ends over the last axis; unchanged over any other."""
    x = call.bounds[0]
    return (
        Bounds(x.lo.min(keepdims=True), x.hi.min(keepdims=True))
        if _reduces_last(call)
        else x
    )


def reduce_min(x: IntArray, *, axis: int) -> IntArray:
    """The least."""
    return np.asarray(x.min(axis=axis, keepdims=True))


def check_argmax(call: Call) -> TensorType:
    """i8, i16 or i32; the axis is removed."""
    check_dtype(call, "C1", call.types, ("i8", "i16", "i32"))
    axis, shape = _check_axis(call), call.types[0].shape
    return TensorType("i32", shape[:axis] + shape[axis + 1 :])


def bound_argmax(call: Call) -> Bounds:
    """Any index."""
    assert call.result is not None
    return full(call.result, 0, call.types[0].shape[call.integer("axis")] - 1)


def argmax(x: IntArray, *, axis: int) -> IntArray:
    """The index of the greatest; the lowest index among equals."""
    return np.asarray(
        x.argmax(axis=axis), np.int64
    )  # numpy's argmax takes the first, too


def check_argsort(call: Call) -> TensorType:
    """i8, i16 or i32, of rank 1 or more."""
    (x,) = call.types
    check_dtype(call, "C1", call.types, ("i8", "i16", "i32"))
    call.require(x.rank >= 1, "C2", f"x is {x}; expected rank 1 or more")
    return TensorType("i32", x.shape)


def bound_argsort(call: Call) -> Bounds:
    """Any index."""
    assert call.result is not None
    return full(call.result, 0, call.result.shape[-1] - 1)


def argsort(x: IntArray, *, descending: bool) -> IntArray:
    """The indices that sort the last axis; equals keep the order of their indices in either direction."""
    wide = x.astype(np.int64)  # where negation is exact for every x
    return np.argsort(-wide if descending else wide, axis=-1, kind="stable")
