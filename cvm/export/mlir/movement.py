"""Elements in other places, of any dtype, and images sampled at other places."""

from __future__ import annotations

from math import prod

import numpy as np

from cvm.export.mlir.step import Step
from cvm.export.mlir.text import Text, Value, array
from cvm.program import IntArray


def reshape(step: Step) -> Value:
    """The same elements in row-major order."""
    return step.text.reshape(step.operand(0), step.result.shape)


def transpose(step: Step) -> Value:
    """TOSA's has the same `perm`."""
    if not step.result.rank:
        return step.operand(0)
    perms = array("i32", step.integers("perm"))
    return step.write("tosa.transpose", step.operand(0), perms=perms)


def concat(step: Step) -> Value:
    """The operands one after the other."""
    return step.write(
        "tosa.concat", *step.all, axis=f"{step.integer('axis')} : i32"
    )


def slice_(step: Step) -> Value:
    """size[i] elements from start[i] on."""
    if not step.result.rank:
        return step.operand(0)
    lists = [step.integers("start"), step.integers("size")]
    x, shape = step.operand(0), step.result.shape
    return step.text.shaped("tosa.slice", x, lists, shape)


def pad(step: Step) -> Value:
    """The value is a constant of one element."""
    x = step.operand(0)
    return padded(step.text, x, step.integers("pads"), step.integer("value"))


def padded(text: Text, x: Value, pads: tuple[int, ...], value: int) -> Value:
    """x with pads[2i] elements before it and pads[2i+1] after it along axis i."""
    if not any(pads):
        return x
    shape = [
        size + before + after
        for size, before, after in zip(
            x.shape, pads[::2], pads[1::2], strict=True
        )
    ]
    if x.element == "i1":
        filling = text.constant(np.array([bool(value)]))
    else:
        held = value - 256 if x.element == "i8" and value > 127 else value
        filling = text.one(held, x.element)
    return text.shaped("tosa.pad", x, [pads], shape, [filling])


def tile(step: Step) -> Value:
    """x multiples[i] times along each axis."""
    if not step.result.rank:
        return step.operand(0)
    lists, shape = [step.integers("multiples")], step.result.shape
    return step.text.shaped("tosa.tile", step.operand(0), lists, shape)


def reverse(step: Step) -> Value:
    """TOSA's has the same `axis`."""
    axis = f"{step.integer('axis')} : i32"
    return step.write("tosa.reverse", step.operand(0), axis=axis)


def gather(step: Step) -> Value:
    """TOSA's; booleans go through bytes."""
    values, indices = step.all
    return gathered(step.text, values, indices)


def gathered(text: Text, values: Value, indices: Value) -> Value:
    """values[n, indices[n, w], c]."""
    if values.element == "i1":
        return _as_bytes(text, values, indices)
    shape = (*indices.shape, values.shape[2])
    operands = [values, indices]
    return text.operation("tosa.gather", operands, values.element, shape)


def _as_bytes(text: Text, values: Value, indices: Value) -> Value:
    raised = text.operation("arith.extui", [values], "i8", values.shape)
    found = gathered(text, raised, indices)
    return text.operation("arith.trunci", [found], "i1", found.shape)


def resize(step: Step) -> Value:
    """One axis after the other; bilinear sums fit 32 bits, for a part of the weights gives no more than all."""
    x = step.operand(0)
    if step.word("mode") == "bilinear":
        x = step.text.operation("tosa.cast", [x], "i32", x.shape)
    for axis in (0, 1):
        x = _resized(step, x, axis)
    return x


def _resized(step: Step, x: Value, axis: int) -> Value:
    """One axis: place i stands at (i d + offset) / n, between two neighbours."""
    text, size = step.text, step.types[0].shape[1 + axis]
    n, d = step.integers("scale")[2 * axis : 2 * axis + 2]
    count = step.result.shape[1 + axis]
    positions = np.arange(count) * d + step.integers("offset")[axis]
    place, remainder = np.divmod(positions, n)
    before, after = np.maximum(place, 0), np.minimum(place + 1, size - 1)
    if step.word("mode") == "nearest":
        nearer = np.where(2 * remainder >= n, after, before)
        return taken(text, x, nearer, 1 + axis)
    weight = remainder.reshape(-1, *[1] * (2 - axis)).astype(np.int32)
    parts = []
    for places, by in ((before, n - weight), (after, weight)):
        found = taken(text, x, places, 1 + axis)
        held = by.reshape((1,) * (4 - by.ndim) + by.shape)
        factors = text.constant(held.astype(np.int32))
        operands = [found, factors, text.one(0, "i8")]
        parts.append(text.operation("tosa.mul", operands, "i32", found.shape))
    return text.operation("tosa.add", parts, "i32", parts[0].shape)


def taken(text: Text, x: Value, places: IntArray, axis: int) -> Value:
    """The elements of x at these places of an axis."""
    rows, rest = prod(x.shape[:axis]), prod(x.shape[axis + 1 :])
    flat = text.reshape(x, (rows, x.shape[axis], rest))
    each = np.broadcast_to(places.astype(np.int32), (rows, len(places)))
    found = gathered(text, flat, text.constant(np.ascontiguousarray(each)))
    shape = (*x.shape[:axis], len(places), *x.shape[axis + 1 :])
    return text.reshape(found, shape)
