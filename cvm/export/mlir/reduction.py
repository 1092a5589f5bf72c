"""Many elements to one: along an axis, in windows of an image, and sorting."""

from __future__ import annotations

from math import prod

import numpy as np

from cvm.export.mlir.instruction import MlirInstruction, Writer
from cvm.export.mlir.text import MlirValue, Text, array


def along(operator: str) -> Writer:
    """TOSA's reduction, whose axis stays with one element."""

    def write(instruction: MlirInstruction) -> MlirValue:
        axis = f"{instruction.integer('axis')} : i32"
        return instruction.write(
            f"tosa.{operator}", instruction.operand(0), axis=axis
        )

    return write


def argmax(instruction: MlirInstruction) -> MlirValue:
    """TOSA's takes bytes, with the first among equals; of others, the least index at which the greatest element stands."""
    axis, x = instruction.integer("axis"), instruction.operand(0)
    named = {"axis": f"{axis} : i32"}
    if x.element == "i8":
        return instruction.write("tosa.argmax", x, **named)
    text, size = instruction.text, x.shape[axis]
    if x.element != "i32":
        x = text.operation("tosa.cast", [x], "i32", x.shape)
    kept = tuple(1 if i == axis else n for i, n in enumerate(x.shape))
    most = text.operation("tosa.reduce_max", [x], "i32", kept, **named)
    is_greatest = text.operation("tosa.equal", [x, most], "i1", x.shape)
    along_axis = [size if i == axis else 1 for i in range(len(x.shape))]
    places = np.arange(size, dtype=np.int32).reshape(along_axis)
    last = text.splat(size - 1, "i32", [1] * len(x.shape))
    operands = [is_greatest, text.constant(places), last]
    candidates = text.operation("tosa.select", operands, "i32", x.shape)
    first = text.operation(
        "tosa.reduce_min", [candidates], "i32", kept, **named
    )
    return text.reshape(first, instruction.result.shape)


def argsort(instruction: MlirInstruction) -> MlirValue:
    """The rank of an element counts those before it; place k holds the one index whose rank is k, where all others are 0."""
    text, x = instruction.text, instruction.operand(0)
    n, rows = x.shape[-1], prod(x.shape[:-1])
    if x.element != "i32":
        x = text.operation("tosa.cast", [x], "i32", x.shape)
    element = text.reshape(x, (rows, n, 1))
    other = text.reshape(x, (rows, 1, n))
    sides = (
        (other, element)
        if instruction.integer("descending")
        else (element, other)
    )
    cube = (rows, n, n)
    ahead = text.operation("tosa.greater", sides, "i1", cube)
    same = text.operation("tosa.equal", [element, other], "i1", cube)
    index = np.arange(n, dtype=np.int32)
    earlier = text.constant((index[:, None] > index)[np.newaxis])
    ties = text.operation("tosa.logical_and", [same, earlier], "i1", cube)
    before = text.operation("tosa.logical_or", [ahead, ties], "i1", cube)
    rank = _summed(text, before, 2)
    places = text.constant(index.reshape(1, 1, n))
    has_rank = text.operation("tosa.equal", [rank, places], "i1", cube)
    indices = text.constant(index.reshape(1, n, 1))
    none = text.constant(np.zeros((1, 1, 1), np.int32))
    chosen = text.operation(
        "tosa.select", [has_rank, indices, none], "i32", cube
    )
    one = text.operation(
        "tosa.reduce_max", [chosen], "i32", (rows, 1, n), axis="1 : i32"
    )
    return text.reshape(one, instruction.result.shape)


def _summed(text: Text, x: MlirValue, axis: int) -> MlirValue:
    if x.element == "i1":
        x = text.operation("tosa.cast", [x], "i32", x.shape)
    shape = tuple(1 if i == axis else n for i, n in enumerate(x.shape))
    attributes = {"axis": f"{axis} : i32"}
    return text.operation("tosa.reduce_sum", [x], "i32", shape, **attributes)


def max_pool2d(instruction: MlirInstruction) -> MlirValue:
    """TOSA's window reads only what is inside x."""
    return instruction.write(
        "tosa.max_pool2d", instruction.operand(0), **_window(instruction)
    )


def avg_pool2d(instruction: MlirInstruction) -> MlirValue:
    """TOSA's mean by its reciprocal."""
    text, x = instruction.text, instruction.operand(0)
    points = [
        text.one(instruction.integer(name), x.element)
        for name in ("input_zp", "output_zp")
    ]
    more = _window(instruction) | {"acc_type": "i32"}
    return instruction.write("tosa.avg_pool2d", x, *points, **more)


def _window(instruction: MlirInstruction) -> dict[str, str]:
    names = ("kernel", "stride", "pad")
    return {name: array("i64", instruction.integers(name)) for name in names}
