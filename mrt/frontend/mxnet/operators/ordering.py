"""Orders: topk, sort, argsort. Of equals the one in front comes first, as in ONNX's TopK, whatever the direction.

MXNet does so too in rows of up to 16 numbers; in longer ones the order of equals is what its sorting happens to leave.
"""

from __future__ import annotations

import numpy as np
import onnx
import onnx_ir as ir

from mrt.frontend.mxnet import integer_dtypes
from mrt.frontend.mxnet.literals import parse_integer
from mrt.frontend.mxnet.operator_call import OperatorCall
from mrt.frontend.mxnet.operators.casts import dtype_attribute, result_dtype
from mrt.frontend.mxnet.operators.linear_algebra import move_axes
from mrt.frontend.mxnet.operators.registry import (
    Attribute,
    boolean,
    choice,
    integer,
    operator,
)

KINDS = ("indices", "value", "both", "mask")
FLOAT = onnx.TensorProto.FLOAT


def _axis() -> Attribute:
    """The last one if not given; None for all in one row."""
    return Attribute(parse_integer, -1, none_allowed=True)


def _row(call: OperatorCall) -> tuple[ir.Value, int]:
    """What is ordered, and along which axis."""
    axis, rank = call.optional_int_attribute("axis"), len(call.shape())
    if axis is not None:
        return call.data, call.axis(axis)
    return call.reshape(call.data, [-1]) if rank > 1 else call.data, 0


def _top(call: OperatorCall, data: ir.Value, axis: int, number: int) -> list[ir.Value]:
    """The values and, as numbers, the positions of the first that many."""
    attributes = {
        "axis": axis,
        "largest": int(not call.bool_attribute("is_ascend")),
        "sorted": 1,
    }
    values, positions = call.add_all(
        "TopK", data, call.constant([number]), **attributes, outputs=2
    )
    return [values, call.add("Cast", positions, to=FLOAT)]


@operator(
    "topk",
    attributes={
        "axis": _axis(),
        "k": integer(1),
        "ret_typ": choice(*KINDS, default="indices"),
        "is_ascend": boolean(False),
        "dtype": dtype_attribute("float32"),
    },
    outputs=lambda values: 2 if values["ret_typ"] == "both" else 1,
)
def topk(call: OperatorCall) -> ir.Value | list[ir.Value]:
    """The k largest or (is_ascend) smallest of every row in order, of all if k is below 1."""
    data, axis = _row(call)
    size, k = call.shape(data)[axis], call.int_attribute("k")
    call.require(k <= size, f"k={k} of {size} numbers")
    kind, dtype = call.string_attribute("ret_typ"), result_dtype(call)
    if kind == "mask":
        return _mask(call, data, axis, k if k >= 1 else size)
    known = integer_dtypes.dtype_of(call.data) or "float32"
    values, positions = _top(call, data, axis, k if k >= 1 else size)
    integer_dtypes.mark(values, known)
    integer_dtypes.mark(positions, dtype)
    if kind == "both":
        return [values, positions]
    return values if kind == "value" else positions


def _mask(call: OperatorCall, data: ir.Value, axis: int, k: int) -> ir.Value:
    """1 at the positions of the first k, 0 elsewhere: every position is compared with each of them."""
    shape = call.shape(data)
    order = [*(other for other in range(len(shape)) if other != axis), axis]
    positions = move_axes(call, _top(call, data, axis, k)[1], order)
    candidates = call.array(np.arange(shape[axis], dtype=np.float32))
    chosen = call.add(
        "Equal", call.reshape(positions, [*call.shape(positions), 1]), candidates
    )
    mask = call.add(
        "ReduceMax", call.add("Cast", chosen, to=FLOAT), call.constant([-2]), keepdims=0
    )
    back = [order.index(place) for place in range(len(shape))]
    return call.reshape(move_axes(call, mask, back), call.shape())


@operator("sort", attributes={"axis": _axis(), "is_ascend": boolean(True)})
def sort(call: OperatorCall) -> ir.Value:
    """Every row in order."""
    data, axis = _row(call)
    return _top(call, data, axis, call.shape(data)[axis])[0]


@operator(
    "argsort",
    attributes={
        "axis": _axis(),
        "is_ascend": boolean(True),
        "dtype": dtype_attribute("float32"),
    },
)
def argsort(call: OperatorCall) -> ir.Value:
    """The positions of the numbers of every row, in their order."""
    data, axis = _row(call)
    return integer_dtypes.mark(
        _top(call, data, axis, call.shape(data)[axis])[1], result_dtype(call)
    )
