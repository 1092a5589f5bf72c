"""Orders: topk, sort, argsort. Of equals the one in front comes first, as in ONNX's TopK, whatever the direction.

MXNet does so too in rows of up to 16 numbers; in longer ones the order of equals is what its sorting happens to leave.
"""

from __future__ import annotations

import numpy as np
import onnx
import onnx_ir as ir

from mrt.frontend.mxnet import integers
from mrt.frontend.mxnet.call import Call
from mrt.frontend.mxnet.literals import parse_integer
from mrt.frontend.mxnet.operators.casts import dtype_attribute, result_dtype
from mrt.frontend.mxnet.operators.linear_algebra import move_axes
from mrt.frontend.mxnet.operators.registry import (
    Attribute,
    flag,
    integer,
    operator,
    word,
)

KINDS = ("indices", "value", "both", "mask")
FLOAT = onnx.TensorProto.FLOAT


def _axis() -> Attribute:
    """The last one if not given; None for all in one row."""
    return Attribute(parse_integer, -1, none_allowed=True)


def _row(call: Call) -> tuple[ir.Value, int]:
    """What is ordered, and along which axis."""
    axis, rank = call.optional_integer("axis"), len(call.shape())
    if axis is not None:
        return call.data, call.axis(axis)
    return call.reshape(call.data, [-1]) if rank > 1 else call.data, 0


def _top(call: Call, data: ir.Value, axis: int, number: int) -> list[ir.Value]:
    """The values and, as numbers, the positions of the first that many."""
    attributes = {"axis": axis, "largest": int(not call.flag("is_ascend")), "sorted": 1}
    values, positions = call.emit_all(
        "TopK", [data, call.constant([number])], attributes, outputs=2
    )
    return [values, call.emit("Cast", [positions], {"to": FLOAT})]


@operator(
    "topk",
    attributes={
        "axis": _axis(),
        "k": integer(1),
        "ret_typ": word(*KINDS, default="indices"),
        "is_ascend": flag(False),
        "dtype": dtype_attribute("float32"),
    },
    outputs=lambda values: 2 if values["ret_typ"] == "both" else 1,
)
def topk(call: Call) -> ir.Value | list[ir.Value]:
    """The k largest or (is_ascend) smallest of every row in order, of all if k is below 1."""
    data, axis = _row(call)
    size, k = call.shape(data)[axis], call.integer("k")
    call.require(k <= size, f"k={k} of {size} numbers")
    kind, dtype = call.word("ret_typ"), result_dtype(call)
    if kind == "mask":
        return _mask(call, data, axis, k if k >= 1 else size)
    known = integers.dtype_of(call.data) or "float32"
    values, positions = _top(call, data, axis, k if k >= 1 else size)
    integers.mark(values, known)
    integers.mark(positions, dtype)
    if kind == "both":
        return [values, positions]
    return values if kind == "value" else positions


def _mask(call: Call, data: ir.Value, axis: int, k: int) -> ir.Value:
    """1 at the positions of the first k, 0 elsewhere: every position is compared with each of them."""
    shape = call.shape(data)
    order = [*(other for other in range(len(shape)) if other != axis), axis]
    positions = move_axes(call, _top(call, data, axis, k)[1], order)
    candidates = call.array(np.arange(shape[axis], dtype=np.float32))
    chosen = call.emit(
        "Equal", [call.reshape(positions, [*call.shape(positions), 1]), candidates]
    )
    mask = call.emit(
        "ReduceMax",
        [call.emit("Cast", [chosen], {"to": FLOAT}), call.constant([-2])],
        {"keepdims": 0},
    )
    back = [order.index(place) for place in range(len(shape))]
    return call.reshape(move_axes(call, mask, back), call.shape())


@operator("sort", attributes={"axis": _axis(), "is_ascend": flag(True)})
def sort(call: Call) -> ir.Value:
    """Every row in order."""
    data, axis = _row(call)
    return _top(call, data, axis, call.shape(data)[axis])[0]


@operator(
    "argsort",
    attributes={
        "axis": _axis(),
        "is_ascend": flag(True),
        "dtype": dtype_attribute("float32"),
    },
)
def argsort(call: Call) -> ir.Value:
    """The positions of the numbers of every row, in their order."""
    data, axis = _row(call)
    return integers.mark(
        _top(call, data, axis, call.shape(data)[axis])[1], result_dtype(call)
    )
