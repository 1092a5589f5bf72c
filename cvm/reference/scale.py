"""Changes of an integer's scale, range and dtype: rescale, clamp, cast."""

from __future__ import annotations

import numpy as np

from cvm.program import DTYPE_RANGES, IntArray, TensorType, arithmetic
from cvm.program.bounds import Bounds
from cvm.reference.call import Call

EIGHT_BITS = ("i8", "u8")


def check_rescale(call: Call) -> TensorType:
    """x of i8 u8 i16 i32; one multiplier and shift, or one per index of the last axis, in canonical form."""
    x, multiplier_type, shift_type = call.types
    dtype = call.word("dtype")
    input_zp = call.integer("input_zp")
    output_zp = call.integer("output_zp")
    call.require(
        x.dtype != "bool", "C1", f"x is {x.dtype}; expected i8, u8, i16 or i32"
    )
    call.require(
        dtype in ("i8", "i16", "i32"),
        "C2",
        f"dtype is {dtype}; expected i8, i16 or i32",
    )
    call.require(
        multiplier_type.dtype == "i32" and shift_type.dtype == "i8",
        "C3",
        f"multiplier is {multiplier_type.dtype} and shift {shift_type.dtype}; expected i32 and i8",
    )
    sizes = {(1,), x.shape[-1:]} if x.rank else {(1,)}
    call.require(
        multiplier_type.shape == shift_type.shape
        and multiplier_type.shape in sizes,
        "C4",
        f"multiplier {multiplier_type} and shift {shift_type} must both hold 1 or {x.shape[-1:] or (1,)} entries",
    )
    check_zero_point(call, "C5", x.dtype, input_zp)
    check_zero_point(call, "C6", dtype, output_zp)
    multiplier, shift = call.constant(1).astype(np.int64), call.constant(2)
    call.require(
        bool(((shift >= 2) & (shift <= 62)).all()),
        "C7",
        "a shift lies outside 2..62",
    )
    canonical = (multiplier >= 2**30) | ((multiplier >= 0) & (shift == 62))
    call.require(
        bool(canonical.all()),
        "C8",
        "a multiplier is neither in 2^30..2^31-1 nor non-negative with shift 62",
    )
    return TensorType(dtype, x.shape)


def check_zero_point(
    call: Call, constraint: str, dtype: str, zero_point: int
) -> None:
    """Zero points exist for 8-bit types only, and lie inside the type."""
    low, high = DTYPE_RANGES[dtype] if dtype in EIGHT_BITS else (0, 0)
    call.require(
        low <= zero_point <= high,
        constraint,
        f"zero point {zero_point} of {dtype} is outside {low}..{high}",
    )


def bound_rescale(call: Call) -> Bounds:
    """Monotone in x for multipliers >= 0: the ends map to the ends."""
    assert call.result is not None
    x = call.bounds[0].spread(call.result)
    multiplier, shift = (call.constant(i).astype(np.int64) for i in (1, 2))
    if (
        call.result.channels == 1
    ):  # too many channels for one interval each: the hull over all of them
        rescaled = np.stack(
            [_rescale(call, end, multiplier, shift) for end in (x.lo, x.hi)]
        )
        return Bounds(
            rescaled.min(keepdims=True).reshape(1),
            rescaled.max(keepdims=True).reshape(1),
        )
    return Bounds(
        _rescale(call, x.lo, multiplier, shift),
        _rescale(call, x.hi, multiplier, shift),
    )


def _rescale(
    call: Call, x: IntArray, multiplier: IntArray, shift: IntArray
) -> IntArray:
    scaled = arithmetic.rescale(x - call.integer("input_zp"), multiplier, shift)
    return arithmetic.saturate(
        scaled + call.integer("output_zp"), call.word("dtype")
    )


def rescale(
    x: IntArray,
    multiplier: IntArray,
    shift: IntArray,
    *,
    input_zp: int,
    output_zp: int,
    dtype: str,
) -> IntArray:
    """saturate(floor(((x - input_zp) * multiplier + 2^(shift-1)) / 2^shift) + output_zp): half rounds up."""
    scaled = arithmetic.rescale(
        x.astype(np.int64) - input_zp,
        multiplier.astype(np.int64),
        shift.astype(np.int64),
    )
    return arithmetic.saturate(scaled + output_zp, dtype).reshape(
        x.shape
    )  # one entry broadcasts to rank 0


def check_clamp(call: Call) -> TensorType:
    """min <= max, both inside x's dtype."""
    (x,) = call.types
    low, high = call.integer("min"), call.integer("max")
    call.require(
        x.dtype in ("i8", "i16", "i32"),
        "C1",
        f"x is {x.dtype}; expected i8, i16 or i32",
    )
    least, most = DTYPE_RANGES[x.dtype]
    call.require(
        least <= low <= high <= most,
        "C2",
        f"min {low}, max {high}: need {least} <= min <= max <= {most}",
    )
    return x


def bound_clamp(call: Call) -> Bounds:
    """The ends, clamped."""
    low, high = call.integer("min"), call.integer("max")
    return Bounds(
        np.clip(call.bounds[0].lo, low, high),
        np.clip(call.bounds[0].hi, low, high),
    )


def clamp(x: IntArray, *, min: int, max: int) -> IntArray:
    """Stop at min and max."""
    return np.clip(x.astype(np.int64), min, max)


def check_cast(call: Call) -> TensorType:
    """Between any two different dtypes; C2 (it fits) is proven, not checked."""
    (x,) = call.types
    dtype = call.word("dtype")
    call.require(dtype != x.dtype, "C1", f"x is already {dtype}")
    return TensorType(dtype, x.shape)


def bound_cast(call: Call) -> Bounds:
    """Unchanged between integers; to bool, whether 0 and whether anything else can occur."""
    x = call.bounds[0]
    if call.word("dtype") != "bool":
        return x
    always = (x.lo > 0) | (x.hi < 0)
    never = (x.lo == 0) & (x.hi == 0)
    return Bounds(always.astype(np.int64), (~never).astype(np.int64))


def cast(x: IntArray, *, dtype: str) -> IntArray:
    """The same integer in another dtype; to bool, x != 0."""
    return x != 0 if dtype == "bool" else x.astype(np.int64)
