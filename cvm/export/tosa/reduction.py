"""Many elements to one: along an axis, in windows of an image, and sorting."""

from __future__ import annotations

from math import prod

import numpy as np

from cvm.export.tosa.builder import TosaBuilder, TosaValue
from cvm.export.tosa.instruction import TosaInstruction, Writer
from cvm.export.tosa.movement import taken
from cvm.tosa.schema import DTYPES


def extreme(operator: str) -> Writer:
    """TOSA's greatest or least, whose axis stays with one element."""

    def write(instruction: TosaInstruction) -> TosaValue:
        axis, x = instruction.integer("axis"), instruction.operand(0)
        return instruction.write(operator, x, axis=axis, nan_mode=1)

    return write


def argmax(instruction: TosaInstruction) -> TosaValue:
    """TOSA's takes bytes, with the first among equals; of others, the least index at which the greatest element stands.

    The last index stands for elements that are not the greatest, so that a reader's proof need not know that one of them is.
    """
    axis, x = instruction.integer("axis"), instruction.operand(0)
    if x.element == "INT8":
        return instruction.write("ARGMAX", x, axis=axis, nan_mode=1)
    graph, size = instruction.graph, x.shape[axis]
    x = graph.cast(x, "INT32")
    kept = tuple(1 if i == axis else n for i, n in enumerate(x.shape))
    attributes = {"axis": axis, "nan_mode": 1}
    most = graph.operation("REDUCE_MAX", [x], "INT32", kept, **attributes)
    is_greatest = graph.operation("EQUAL", [x, most], "BOOL", x.shape)
    along_axis = [size if i == axis else 1 for i in range(len(x.shape))]
    places = graph.constant(np.arange(size).reshape(along_axis), "INT32")
    last = graph.splat(size - 1, "INT32", len(x.shape))
    candidates = graph.operation(
        "SELECT", [is_greatest, places, last], "INT32", x.shape
    )
    first = graph.operation(
        "REDUCE_MIN", [candidates], "INT32", kept, **attributes
    )
    return graph.reshape(first, instruction.result.shape)


def argsort(instruction: TosaInstruction) -> TosaValue:
    """The rank of an element counts those before it; place k holds the one index whose rank is k, where all others are 0."""
    graph, x = instruction.graph, instruction.operand(0)
    n, rows = x.shape[-1], prod(x.shape[:-1])
    x = graph.cast(x, "INT32")
    element = graph.reshape(x, (rows, n, 1))
    other = graph.reshape(x, (rows, 1, n))
    sides = (
        [other, element]
        if instruction.integer("descending")
        else [element, other]
    )
    cube = (rows, n, n)
    ahead = graph.operation("GREATER", sides, "BOOL", cube)
    same = graph.operation("EQUAL", [element, other], "BOOL", cube)
    index = np.arange(n)
    earlier = graph.constant((index[:, None] > index)[np.newaxis], "BOOL")
    ties = graph.operation("LOGICAL_AND", [same, earlier], "BOOL", cube)
    before = graph.operation("LOGICAL_OR", [ahead, ties], "BOOL", cube)
    rank = _summed(graph, before, 2)
    places = graph.constant(index.reshape(1, 1, n), "INT32")
    has_rank = graph.operation("EQUAL", [rank, places], "BOOL", cube)
    indices = graph.constant(index.reshape(1, n, 1), "INT32")
    none = graph.splat(0, "INT32", 3)
    chosen = graph.operation("SELECT", [has_rank, indices, none], "INT32", cube)
    one = graph.operation(
        "REDUCE_MAX", [chosen], "INT32", (rows, 1, n), axis=1, nan_mode=1
    )
    return graph.reshape(one, instruction.result.shape)


def _summed(graph: TosaBuilder, x: TosaValue, axis: int) -> TosaValue:
    shape = tuple(1 if i == axis else n for i, n in enumerate(x.shape))
    x = graph.cast(x, "INT32")
    return graph.operation("REDUCE_SUM", [x], "INT32", shape, axis=axis)


def max_pool2d(instruction: TosaInstruction) -> TosaValue:
    """TOSA's window reads only what is inside x; it has 8 and 16 bits."""
    x = instruction.operand(0)
    if x.element != "INT32":
        window = _window(instruction)
        return instruction.write("MAX_POOL2D", x, **window, nan_mode=1)
    for axis in (0, 1):
        x = _pooled(instruction, x, axis)
    return x


def _pooled(instruction: TosaInstruction, x: TosaValue, axis: int) -> TosaValue:
    """The greatest along one axis. A place outside x becomes the nearest inside, which is in the window too."""
    graph, size = instruction.graph, x.shape[1 + axis]
    stride = instruction.integers("stride")[axis]
    first = np.arange(instruction.result.shape[1 + axis]) * stride
    first = first - instruction.integers("pad")[2 * axis]
    most = None
    for step in range(instruction.integers("kernel")[axis]):
        places = np.clip(first + step, 0, size - 1)
        value = taken(graph, x, places, 1 + axis)
        most = value if most is None else graph.operation("MAXIMUM", [most, value], "INT32", value.shape, nan_mode=1)  # fmt: skip
    assert most is not None
    return most


def avg_pool2d(instruction: TosaInstruction) -> TosaValue:
    """TOSA's mean by its reciprocal."""
    graph, x = instruction.graph, instruction.operand(0)
    points = [
        graph.one(instruction.integer(name), x.element)
        for name in ("input_zp", "output_zp")
    ]
    kind = DTYPES.index("INT32")
    window = _window(instruction)
    return instruction.write("AVG_POOL2D", x, *points, **window, acc_type=kind)


def _window(instruction: TosaInstruction) -> dict[str, tuple[int, ...]]:
    names = ("kernel", "stride", "pad")
    return {name: instruction.integers(name) for name in names}
