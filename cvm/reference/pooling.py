"""One value from each window of an image: max_pool2d, avg_pool2d. Padding never counts."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from cvm.program import IntArray, TensorType, arithmetic, dtype_name
from cvm.program.bounds import Bounds
from cvm.reference.call import Call
from cvm.reference.scale import check_zero_point
from cvm.reference.window import MAX_STEP, output_size, overlap

MAX_AVERAGED = {
    "i8": 2**23,
    "i16": 2**16,
}  # elements of a window whose sum surely fits i32


def check_max_pool2d(call: Call) -> TensorType:
    """x[N,H,W,C] of i8 i16 i32; the windows must cover the padded input exactly."""
    (x,) = call.types
    call.require(
        x.dtype in ("i8", "i16", "i32") and x.rank == 4,
        "C1",
        f"x is {x}; expected i8, i16 or i32 of rank 4",
    )
    return _check_windows(call)


def check_avg_pool2d(call: Call) -> TensorType:
    """x[N,H,W,C] of i8 i16; windows as for max_pool2d, and none so large that its sum could leave i32."""
    (x,) = call.types
    call.require(
        x.dtype in ("i8", "i16") and x.rank == 4,
        "C1",
        f"x is {x}; expected i8 or i16 of rank 4",
    )
    result = _check_windows(call)
    check_zero_point(call, "C5", x.dtype, call.integer("input_zp"))
    check_zero_point(call, "C6", x.dtype, call.integer("output_zp"))
    area = math.prod(call.integers("kernel"))
    call.require(
        area <= MAX_AVERAGED[x.dtype],
        "C7",
        f"{area} elements a window; at most {MAX_AVERAGED[x.dtype]}",
    )
    return result


def _check_windows(call: Call) -> TensorType:
    (x,) = call.types
    kernel = call.integers("kernel")
    stride = call.integers("stride")
    pad = call.integers("pad")
    call.require(
        all(1 <= step <= MAX_STEP for step in (*kernel, *stride)),
        "C2",
        f"kernel {kernel}, stride {stride}: need 1..{MAX_STEP}",
    )
    call.require(
        all(0 <= amount < kernel[i // 2] for i, amount in enumerate(pad)),
        "C3",
        f"pad {pad}: need 0.. below the kernel {kernel}",
    )
    size = [
        output_size(
            call,
            "C4",
            x.shape[1 + i],
            kernel[i],
            sum(pad[2 * i : 2 * i + 2]),
            stride[i],
        )
        for i in (0, 1)
    ]
    return TensorType(x.dtype, (x.shape[0], *size, x.shape[3]))


def bound_max_pool2d(call: Call) -> Bounds:
    """A greatest element is an element."""
    return call.bounds[0]


def bound_avg_pool2d(call: Call) -> Bounds:
    """The mean of equal integers is exact for every window size, and others lie between: only the zero points move."""
    x = call.bounds[0]
    moved = call.integer("output_zp") - call.integer("input_zp")
    return Bounds(
        *(
            arithmetic.saturate(end + moved, call.types[0].dtype)
            for end in (x.lo, x.hi)
        )
    )


def max_pool2d(
    x: IntArray,
    *,
    kernel: tuple[int, ...],
    stride: tuple[int, ...],
    pad: tuple[int, ...],
) -> IntArray:
    """y[n,i,j,c] = the greatest x[n,u,v,c] of the window, u from i stride[0] - pad[0], v from j stride[1] - pad[2]."""
    lowest = int(np.iinfo(x.dtype).min)
    for axis, window in _windows(kernel, stride, pad):
        x = _slide(x, axis, window, np.maximum, lowest)
    return x


def avg_pool2d(
    x: IntArray,
    *,
    kernel: tuple[int, ...],
    stride: tuple[int, ...],
    pad: tuple[int, ...],
    input_zp: int,
    output_zp: int,
) -> IntArray:
    """saturate(mean + output_zp), mean = the sum of x - input_zp over the window's places in x times a reciprocal."""
    sums = x.astype(np.int64) - input_zp
    counts = np.ones((1, *x.shape[1:3], 1), np.int64)
    for axis, window in _windows(kernel, stride, pad):
        sums = _slide(sums, axis, window, np.add, 0)
        counts = _slide(counts, axis, window, np.add, 0)
    return arithmetic.saturate(_mean(sums, counts) + output_zp, dtype_name(x))


def _windows(
    kernel: tuple[int, ...], stride: tuple[int, ...], pad: tuple[int, ...]
) -> list[tuple[int, tuple[int, int, int, int]]]:
    """Both image axes with their kernel, stride and pads: a window is a rectangle, so each axis is combined alone."""
    return [
        (1 + i, (kernel[i], stride[i], pad[2 * i], pad[2 * i + 1]))
        for i in (0, 1)
    ]


def _slide(
    x: IntArray,
    axis: int,
    window: tuple[int, int, int, int],
    combine: Callable[..., Any],
    neutral: int,
) -> IntArray:
    """Combine the places of each window along one axis."""
    kernel, stride, before, after = window
    size = x.shape[axis]
    count = (size + before + after - kernel) // stride + 1
    source = np.moveaxis(x, axis, 0)
    result = np.full((count, *source.shape[1:]), neutral, x.dtype)
    for tap in range(kernel):
        to, places = overlap(tap - before, stride, size, count)
        combine(result[to], source[places], out=result[to])
    return np.moveaxis(result, 0, axis)


def _mean(sums: IntArray, counts: IntArray) -> IntArray:
    """TOSA's apply_scale_32 by reciprocal_scale(count): a reciprocal of 31 bits, the product rounded half up."""
    bits = np.searchsorted(
        2 ** np.arange(25), counts
    )  # the least k with 2^k >= count
    multiplier = ((2**30 + 1) << bits) // counts
    return arithmetic.shift_half_up(sums * multiplier, 30 + bits)
