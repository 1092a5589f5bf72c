"""Reading values by index: table (by the value itself), gather (rows), interpolate (straight lines between few entries)."""

from __future__ import annotations

import numpy as np

from cvm.errors import Trap
from cvm.program import DTYPE_RANGES, IntArray, TensorType
from cvm.program.bounds import Bounds
from cvm.reference.call import Call

TABLE_ENTRIES = {"i8": 256, "u8": 256, "i16": 65536}
SEGMENT = 128  # integers of i16 between two points of interpolate
POINTS = 513


def check_table(call: Call) -> TensorType:
    """x of i8 u8 i16, one entry for each value it can have."""
    x, values = call.types
    call.require(
        x.dtype in TABLE_ENTRIES,
        "C1",
        f"x is {x.dtype}; expected i8, u8 or i16",
    )
    call.require(
        values.dtype in ("i8", "i16", "i32"),
        "C2",
        f"values is {values.dtype}; expected i8, i16 or i32",
    )
    entries = TABLE_ENTRIES[x.dtype]
    call.require(
        values.shape == (entries,),
        "C3",
        f"values has shape {values.shape}; expected ({entries},) for {x.dtype}",
    )
    return TensorType(values.dtype, x.shape)


def bound_table(call: Call) -> Bounds:
    """The least and greatest entry each channel's interval can pick."""
    first = DTYPE_RANGES[call.types[0].dtype][0]
    return _range_of(
        call.constant(1), call.bounds[0].lo - first, call.bounds[0].hi - first
    )


def _range_of(values: IntArray, start: IntArray, end: IntArray) -> Bounds:
    """Least and greatest of values[start..end] for many ranges: level j holds the extremes of every 2^j neighbours."""
    level = (
        np.searchsorted(2 ** np.arange(17), end - start + 1, side="right") - 1
    )
    lo, hi = np.empty_like(start), np.empty_like(start)
    least = most = values
    for j in range(int(level.max()) + 1):
        if j > 0:
            half = 2 ** (j - 1)
            least = np.minimum(least[:-half], least[half:])
            most = np.maximum(most[:-half], most[half:])
        at_level = level == j
        left, right = start[at_level], end[at_level] + 1 - 2**j
        lo[at_level], hi[at_level] = (
            np.minimum(least[left], least[right]),
            np.maximum(most[left], most[right]),
        )
    return Bounds(lo, hi)


def table(x: IntArray, values: IntArray) -> IntArray:
    """y = values[x - least value of x's dtype]."""
    first = int(np.iinfo(x.dtype).min)
    return values[x.astype(np.int64) - first]


def check_gather(call: Call) -> TensorType:
    """values[N,K,C] of any dtype, indices[N,W] i32; C3 (indices inside 0..K-1) is proven."""
    values, indices = call.types
    call.require(values.rank == 3, "C1", f"values is {values}; expected rank 3")
    call.require(
        indices.dtype == "i32"
        and indices.rank == 2
        and indices.shape[0] == values.shape[0],
        "C2",
        f"indices is {indices}; expected i32[{values.shape[0]},W]",
    )
    return TensorType(values.dtype, (*indices.shape, values.shape[2]))


def bound_gather(call: Call) -> Bounds:
    """The values' own bounds, once no index can miss."""
    indices, rows = call.bounds[1], call.types[0].shape[1]
    inside = indices.min >= 0 and indices.max < rows
    call.prove(
        inside,
        "C3",
        f"indices lie in {indices.min}..{indices.max}, outside 0..{rows - 1}",
    )
    return call.bounds[0]


def gather(values: IntArray, indices: IntArray) -> IntArray:
    """y[n,w,c] = values[n, indices[n,w], c]."""
    least, most = int(indices.min()), int(indices.max())
    if least < 0 or most >= values.shape[1]:
        raise Trap(
            f"index {least if least < 0 else most} lies outside 0..{values.shape[1] - 1}"
        )
    return values[np.arange(len(values))[:, None], indices]


def check_interpolate(call: Call) -> TensorType:
    """x of i16; 513 entries of i8 or i16 without jumps of more than 16 bits."""
    x, values = call.types
    call.require(x.dtype == "i16", "C1", f"x is {x.dtype}; expected i16")
    call.require(
        values.dtype in ("i8", "i16"),
        "C2",
        f"values is {values.dtype}; expected i8 or i16",
    )
    call.require(
        values.shape == (POINTS,),
        "C3",
        f"values has shape {values.shape}; expected ({POINTS},)",
    )
    jumps = np.diff(call.constant(1).astype(np.int64))
    least, most = DTYPE_RANGES["i16"]
    inside = least <= jumps.min() and jumps.max() <= most
    call.require(
        inside,
        "C4",
        f"values jumps by {jumps.min()}..{jumps.max()} from an entry to the next; expected {least}..{most}",
    )
    return TensorType("i32", x.shape)


def bound_interpolate(call: Call) -> Bounds:
    """Lines have their extremes at their ends: those of the interval, and the points inside it."""
    x, values = call.bounds[0], call.constant(1)
    at_ends = np.stack([_between(end, values) for end in (x.lo, x.hi)])
    least, most = at_ends.min(axis=0), at_ends.max(axis=0)
    start = -((-32768 - x.lo) // SEGMENT)
    end = (x.hi + 32768) // SEGMENT
    has_points = start <= end
    points = _range_of(
        values.astype(np.int64) * SEGMENT, np.minimum(start, end), end
    )
    lo = np.where(has_points, np.minimum(least, points.lo), least)
    hi = np.where(has_points, np.maximum(most, points.hi), most)
    return Bounds(lo, hi)


def interpolate(x: IntArray, values: IntArray) -> IntArray:
    """y = 128 * values[i] + f * (values[i+1] - values[i]); i and f are quotient and remainder of (x + 32768) / 128."""
    return _between(x.astype(np.int64), values)


def _between(x: IntArray, values: IntArray) -> IntArray:
    place, fraction = np.divmod(x + 32768, SEGMENT)
    wide = values.astype(np.int64)
    y: IntArray = SEGMENT * wide[place] + fraction * (
        wide[place + 1] - wide[place]
    )
    return y
