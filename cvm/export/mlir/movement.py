"""Elements in other places, of any dtype, and images sampled at other places."""

from __future__ import annotations

from math import prod

import numpy as np

from cvm.export.mlir.instruction import MlirInstruction
from cvm.export.mlir.text import MlirValue, Text, array
from cvm.export.neighbours import neighbours
from cvm.program import IntArray


def reshape(instruction: MlirInstruction) -> MlirValue:
    """The same elements in row-major order."""
    return instruction.text.reshape(
        instruction.operand(0), instruction.result.shape
    )


def transpose(instruction: MlirInstruction) -> MlirValue:
    """TOSA's has the same `perm`."""
    if not instruction.result.rank:
        return instruction.operand(0)
    perms = array("i32", instruction.integers("perm"))
    return instruction.write(
        "tosa.transpose", instruction.operand(0), perms=perms
    )


def concat(instruction: MlirInstruction) -> MlirValue:
    """The operands one after the other."""
    return instruction.write(
        "tosa.concat",
        *instruction.all,
        axis=f"{instruction.integer('axis')} : i32",
    )


def slice_(instruction: MlirInstruction) -> MlirValue:
    """size[i] elements from start[i] on."""
    if not instruction.result.rank:
        return instruction.operand(0)
    lists = [instruction.integers("start"), instruction.integers("size")]
    x, shape = instruction.operand(0), instruction.result.shape
    return instruction.text.shaped("tosa.slice", x, lists, shape)


def pad(instruction: MlirInstruction) -> MlirValue:
    """The value is a constant of one element."""
    x = instruction.operand(0)
    return padded(
        instruction.text,
        x,
        instruction.integers("pads"),
        instruction.integer("value"),
    )


def padded(
    text: Text, x: MlirValue, pads: tuple[int, ...], value: int
) -> MlirValue:
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
        signed = value - 256 if x.element == "i8" and value > 127 else value
        filling = text.one(signed, x.element)
    return text.shaped("tosa.pad", x, [pads], shape, [filling])


def tile(instruction: MlirInstruction) -> MlirValue:
    """x multiples[i] times along each axis."""
    if not instruction.result.rank:
        return instruction.operand(0)
    lists, shape = [instruction.integers("multiples")], instruction.result.shape
    return instruction.text.shaped(
        "tosa.tile", instruction.operand(0), lists, shape
    )


def reverse(instruction: MlirInstruction) -> MlirValue:
    """TOSA's has the same `axis`."""
    axis = f"{instruction.integer('axis')} : i32"
    return instruction.write("tosa.reverse", instruction.operand(0), axis=axis)


def gather(instruction: MlirInstruction) -> MlirValue:
    """TOSA's; booleans go through bytes."""
    values, indices = instruction.all
    return gathered(instruction.text, values, indices)


def gathered(text: Text, values: MlirValue, indices: MlirValue) -> MlirValue:
    """values[n, indices[n, w], c]."""
    if values.element == "i1":
        return _as_bytes(text, values, indices)
    shape = (*indices.shape, values.shape[2])
    operands = [values, indices]
    return text.operation("tosa.gather", operands, values.element, shape)


def _as_bytes(text: Text, values: MlirValue, indices: MlirValue) -> MlirValue:
    raised = text.operation("arith.extui", [values], "i8", values.shape)
    gathered_bytes = gathered(text, raised, indices)
    return text.operation(
        "arith.trunci", [gathered_bytes], "i1", gathered_bytes.shape
    )


def resize(instruction: MlirInstruction) -> MlirValue:
    """One axis after the other; bilinear sums fit 32 bits, for a part of the weights gives no more than all."""
    x = instruction.operand(0)
    if instruction.word("mode") == "bilinear":
        x = instruction.text.operation("tosa.cast", [x], "i32", x.shape)
    for axis in (0, 1):
        x = _resized(instruction, x, axis)
    return x


def _resized(
    instruction: MlirInstruction, x: MlirValue, axis: int
) -> MlirValue:
    """One axis: each place from its two neighbours."""
    text = instruction.text
    beside = neighbours(
        instruction, instruction.types[0], instruction.result, axis
    )
    if instruction.word("mode") == "nearest":
        return taken(text, x, beside.nearest, 1 + axis)
    products = []
    for places, weights in beside.weighted(axis):
        neighbour = taken(text, x, places, 1 + axis)
        aligned = weights.reshape((1,) * (4 - weights.ndim) + weights.shape)
        factors = text.constant(aligned.astype(np.int32))
        operands = [neighbour, factors, text.one(0, "i8")]
        products.append(
            text.operation("tosa.mul", operands, "i32", neighbour.shape)
        )
    return text.operation("tosa.add", products, "i32", products[0].shape)


def taken(text: Text, x: MlirValue, places: IntArray, axis: int) -> MlirValue:
    """The elements of x at these places of an axis."""
    rows, rest = prod(x.shape[:axis]), prod(x.shape[axis + 1 :])
    flat = text.reshape(x, (rows, x.shape[axis], rest))
    indices = np.broadcast_to(places.astype(np.int32), (rows, len(places)))
    result = gathered(text, flat, text.constant(np.ascontiguousarray(indices)))
    shape = (*x.shape[:axis], len(places), *x.shape[axis + 1 :])
    return text.reshape(result, shape)
