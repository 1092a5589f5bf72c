"""Elements in other places, of any dtype. A proof keeps the last axis's intervals wherever that axis stays in place."""

from __future__ import annotations

import math
from functools import reduce

import numpy as np

from cvm.program import DTYPE_RANGES, IntArray, TensorType
from cvm.program.bounds import Bounds, full
from cvm.reference.call import Call


def check_reshape(call: Call) -> TensorType:
    """As many elements as before."""
    (x,), shape = call.types, call.integers("shape")
    call.require(
        all(dimension >= 1 for dimension in shape),
        "C1",
        f"shape {shape} has a dimension below 1",
    )
    count = math.prod(shape)
    call.require(
        count == x.elements,
        "C2",
        f"shape {shape} holds {count} elements; {x} holds {x.elements}",
    )
    return TensorType(x.dtype, shape)


def bound_reshape(call: Call) -> Bounds:
    """Kept with the last dimension; otherwise `Bounds.spread` takes the hull, for the numbers of channels differ."""
    return call.bounds[0]


def reshape(x: IntArray, *, shape: tuple[int, ...]) -> IntArray:
    """The same elements in row-major order."""
    return x.reshape(shape)


def check_transpose(call: Call) -> TensorType:
    """perm names every axis once."""
    (x,), perm = call.types, call.integers("perm")
    call.require(
        sorted(perm) == list(range(x.rank)),
        "C1",
        f"perm {perm} does not order the {x.rank} axes of {x}",
    )
    return TensorType(x.dtype, tuple(x.shape[axis] for axis in perm))


def bound_transpose(call: Call) -> Bounds:
    """Kept if the last axis stays the last; the hull otherwise."""
    x, perm = call.bounds[0], call.integers("perm")
    return x if not perm or perm[-1] == len(perm) - 1 else x.hull()


def transpose(x: IntArray, *, perm: tuple[int, ...]) -> IntArray:
    """Axis i of the result is axis perm[i] of x."""
    return x.transpose(perm)


def check_concat(call: Call) -> TensorType:
    """One dtype; shapes equal but for the axis."""
    first, axis = call.types[0], call.integer("axis")
    dtypes = sorted({x.dtype for x in call.types})
    call.require(
        len(dtypes) == 1,
        "C1",
        f"operands are {', '.join(dtypes)}; expected one dtype",
    )
    call.require(
        0 <= axis < first.rank,
        "C2",
        f"axis {axis} of {first}; expected 0 <= axis < {first.rank}",
    )
    before, after = first.shape[:axis], first.shape[axis + 1 :]
    for x in dict.fromkeys(call.types):
        fits = (
            x.rank == first.rank
            and x.shape[:axis] == before
            and x.shape[axis + 1 :] == after
        )
        call.require(
            fits,
            "C3",
            f"an operand is {x}; expected the shape of {first} but for axis {axis}",
        )
    return TensorType(
        first.dtype, (*before, sum(x.shape[axis] for x in call.types), *after)
    )


def bound_concat(call: Call) -> Bounds:
    """One after the other along the last axis; the hull over the operands along any other."""
    assert call.result is not None
    last = call.integer("axis") == call.result.rank - 1
    if last and call.result.channels == call.result.shape[-1]:
        return Bounds(
            np.concatenate([x.lo for x in call.bounds]),
            np.concatenate([x.hi for x in call.bounds]),
        )
    distinct = {
        id(x): x for x in call.bounds
    }.values()  # a value may be joined to itself a million times
    return reduce(Bounds.union, (x.hull() if last else x for x in distinct))


def concat(*operands: IntArray, axis: int) -> IntArray:
    """The operands one after the other along the axis."""
    return np.concatenate(operands, axis=axis)


def check_slice(call: Call) -> TensorType:
    """A non-empty box inside x."""
    (x,), start, size = (
        call.types,
        call.integers("start"),
        call.integers("size"),
    )
    lengths = f"start {start} and size {size} must have one entry for each of the {x.rank} axes of {x}"
    call.require(len(start) == len(size) == x.rank, "C1", lengths)
    for axis, (first, count, dimension) in enumerate(
        zip(start, size, x.shape, strict=True)
    ):
        holds = first >= 0 and count >= 1 and first + count <= dimension
        call.require(
            holds,
            "C2",
            f"axis {axis}: {count} elements from {first} on are not inside 0..{dimension - 1}",
        )
    return TensorType(x.dtype, size)


def bound_slice(call: Call) -> Bounds:
    """The same part of the last axis's intervals."""
    x, (type_,) = call.bounds[0], call.types
    if not type_.rank or len(x.lo) != type_.shape[-1]:
        return x
    first, count = call.integers("start")[-1], call.integers("size")[-1]
    return Bounds(x.lo[first : first + count], x.hi[first : first + count])


def slice_(
    x: IntArray, *, start: tuple[int, ...], size: tuple[int, ...]
) -> IntArray:
    """size[i] elements from start[i] on, along each axis i."""
    return x[
        tuple(
            slice(first, first + count)
            for first, count in zip(start, size, strict=True)
        )
    ]


def check_pad(call: Call) -> TensorType:
    """pads holds (before, after) of each axis in turn."""
    (x,), pads, value = call.types, call.integers("pads"), call.integer("value")
    call.require(
        len(pads) == 2 * x.rank,
        "C1",
        f"{len(pads)} pads for {x}; expected {2 * x.rank}",
    )
    call.require(
        all(count >= 0 for count in pads),
        "C2",
        f"pads {pads} must not be negative",
    )
    low, high = DTYPE_RANGES[x.dtype]
    call.require(
        low <= value <= high,
        "C3",
        f"value {value} does not fit {x.dtype} ({low}..{high})",
    )
    around = zip(pads[::2], x.shape, pads[1::2], strict=True)
    return TensorType(
        x.dtype,
        tuple(
            before + dimension + after for before, dimension, after in around
        ),
    )


def bound_pad(call: Call) -> Bounds:
    """The value joins every interval where another axis is padded, and stands alone at the last axis's own pads."""
    assert call.result is not None
    x = call.bounds[0]
    pads = call.integers("pads")
    value = call.integer("value")
    if not any(pads):
        return x
    if call.result.channels != call.result.shape[-1]:
        return x.hull().union(
            Bounds(np.full(1, value, np.int64), np.full(1, value, np.int64))
        )
    padded = Bounds(
        np.pad(x.lo, pads[-2:], constant_values=value),
        np.pad(x.hi, pads[-2:], constant_values=value),
    )
    return (
        padded.union(full(call.result, value, value))
        if any(pads[:-2])
        else padded
    )


def pad(x: IntArray, *, pads: tuple[int, ...], value: int) -> IntArray:
    """x with pads[2i] elements of the value before it and pads[2i+1] after it along each axis i."""
    befores, afters = pads[::2], pads[1::2]
    shape = [
        before + size + after
        for before, size, after in zip(befores, x.shape, afters, strict=True)
    ]
    padded = np.full(shape, value, x.dtype)
    padded[
        tuple(
            slice(before, before + size)
            for before, size in zip(befores, x.shape, strict=True)
        )
    ] = x
    return padded


def check_tile(call: Call) -> TensorType:
    """One multiple for each axis."""
    (x,), multiples = call.types, call.integers("multiples")
    call.require(
        len(multiples) == x.rank,
        "C1",
        f"{len(multiples)} multiples for {x}; expected {x.rank}",
    )
    call.require(
        all(count >= 1 for count in multiples),
        "C2",
        f"multiples {multiples} must be at least 1",
    )
    return TensorType(
        x.dtype,
        tuple(
            count * size for count, size in zip(multiples, x.shape, strict=True)
        ),
    )


def bound_tile(call: Call) -> Bounds:
    """The last axis's intervals, repeated like the values."""
    assert call.result is not None
    x, result = call.bounds[0], call.result
    if not result.rank or result.channels != result.shape[-1]:
        return x
    count = call.integers("multiples")[-1]
    return Bounds(np.tile(x.lo, count), np.tile(x.hi, count))


def tile(x: IntArray, *, multiples: tuple[int, ...]) -> IntArray:
    """x multiples[i] times along each axis i."""
    return np.tile(x, multiples)


def check_reverse(call: Call) -> TensorType:
    """One axis of x."""
    (x,), axis = call.types, call.integer("axis")
    call.require(
        0 <= axis < x.rank,
        "C1",
        f"axis {axis} of {x}; expected 0 <= axis < {x.rank}",
    )
    return x


def bound_reverse(call: Call) -> Bounds:
    """Reversed with the last axis, kept with any other."""
    x = call.bounds[0]
    return (
        Bounds(x.lo[::-1], x.hi[::-1])
        if call.integer("axis") == call.types[0].rank - 1
        else x
    )


def reverse(x: IntArray, *, axis: int) -> IntArray:
    """The last element first, along the axis."""
    return np.flip(x, axis)
