"""Sampling an image at rational positions, nearest or bilinear, as TOSA's integer form does: weights stay integers."""

from __future__ import annotations

import numpy as np

from cvm.program import IntArray, TensorType
from cvm.program.bounds import Bounds
from cvm.reference.call import Call

MAX_SIZE = 2**14 - 1
MAX_SCALE = 2**11


def check_resize(call: Call) -> TensorType:
    """x[N,H,W,C]; scale (yn, yd, xn, xd), offset and border (y, x) in units of 1/n of a place of x."""
    (x,) = call.types
    nearest = call.word("mode") == "nearest"
    call.require(x.rank == 4, "C1", f"x is {x}; expected rank 4")
    call.require(
        nearest or x.dtype in ("i8", "i16"),
        "C2",
        f"x is {x.dtype}; bilinear takes i8 or i16",
    )
    size = [_output_size(call, axis) for axis in (0, 1)]
    call.require(
        max(*size, *x.shape[1:3]) <= MAX_SIZE,
        "C7",
        f"image {x.shape[1]}x{x.shape[2]} to {size[0]}x{size[1]}: at most {MAX_SIZE} a side",
    )
    return TensorType(
        x.dtype if nearest else "i32", (x.shape[0], *size, x.shape[3])
    )


def _output_size(call: Call, axis: int) -> int:
    n, d = call.integers("scale")[2 * axis : 2 * axis + 2]
    offset = call.integers("offset")[axis]
    border = call.integers("border")[axis]
    call.require(
        1 <= n <= MAX_SCALE and 1 <= d < 16 * n,
        "C3",
        f"scale {n}/{d}: need 1 <= n <= {MAX_SCALE}, 1 <= d < 16 n",
    )
    call.require(
        -n <= offset < 16 * n,
        "C4",
        f"offset {offset}: need {-n} <= offset < {16 * n}",
    )
    call.require(
        -16 * n <= border < n,
        "C5",
        f"border {border}: need {-16 * n} <= border < {n}",
    )
    room = (call.types[0].shape[1 + axis] - 1) * n - offset + border
    call.require(
        room >= 0 and room % d == 0,
        "C6",
        f"{room} over {d}: the output size is not exact",
    )
    return room // d + 1


def bound_resize(call: Call) -> Bounds:
    """Nearest copies; bilinear weights are not negative and always add up to yn * xn."""
    x = call.bounds[0]
    if call.word("mode") == "nearest":
        return x
    weight = call.integers("scale")[0] * call.integers("scale")[2]
    return Bounds(x.lo * weight, x.hi * weight)


def resize(
    x: IntArray,
    *,
    scale: tuple[int, ...],
    offset: tuple[int, ...],
    border: tuple[int, ...],
    mode: str,
) -> IntArray:
    """Place i of the output stands at (i d + offset) / n of x: its neighbours weigh n - r and r, r the remainder."""
    if mode == "bilinear":
        x = x.astype(np.int64)
    for axis in (0, 1):
        n, d = scale[2 * axis : 2 * axis + 2]
        size = x.shape[1 + axis]
        count = ((size - 1) * n - offset[axis] + border[axis]) // d + 1
        place, remainder = np.divmod(np.arange(count) * d + offset[axis], n)
        before, after = np.maximum(place, 0), np.minimum(place + 1, size - 1)
        if mode == "nearest":
            x = x.take(
                np.where(2 * remainder >= n, after, before), axis=1 + axis
            )
        else:
            weight = remainder.reshape(-1, *[1] * (2 - axis))
            x = (
                x.take(before, axis=1 + axis) * (n - weight)
                + x.take(after, axis=1 + axis) * weight
            )
    return x
