"""topk, sort and argsort. Equal numbers keep their order in both directions, as in ONNX's TopK.

MXNet keeps it too in rows of up to 16 numbers; in longer rows its sort is not stable.
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
    """Declare the axis of the rows, by default the last; None sorts all numbers as one row."""
    return Attribute(parse_integer, -1, none_allowed=True)


def _rows(call: OperatorCall) -> tuple[ir.Value, int]:
    """Return the value to sort, and the axis along which it is sorted."""
    axis = call.optional_int_attribute("axis")
    if axis is not None:
        return call.data, call.axis(axis)
    if call.rank() == 1:
        return call.data, 0
    return call.reshape(call.data, [-1]), 0


def _first(
    call: OperatorCall, data: ir.Value, axis: int, number: int
) -> tuple[ir.Value, ir.Value]:
    """Return the first numbers of every row in order, and their positions as floats."""
    is_ascending = call.bool_attribute("is_ascend")
    values, positions = call.add_all(
        "TopK",
        data,
        call.constant([number]),
        axis=axis,
        largest=int(not is_ascending),
        sorted=1,
        outputs=2,
    )
    return values, call.add("Cast", positions, to=FLOAT)


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
    """Write the k largest or (is_ascend) smallest of every row in order, all if k is below 1."""
    data, axis = _rows(call)
    size = call.shape(data)[axis]
    k = call.int_attribute("k")
    call.require(k <= size, f"k={k} of {size} numbers")
    number = k if k >= 1 else size
    kind = call.string_attribute("ret_typ")
    if kind == "mask":
        return _mask(call, data, axis, number)
    values, positions = _first(call, data, axis, number)
    dtype_of_values = integer_dtypes.dtype_of(call.data) or "float32"
    integer_dtypes.mark(values, dtype_of_values)
    integer_dtypes.mark(positions, result_dtype(call))
    if kind == "both":
        return [values, positions]
    return values if kind == "value" else positions


def _mask(call: OperatorCall, data: ir.Value, axis: int, k: int) -> ir.Value:
    """Write 1 at the first k positions and 0 elsewhere.

    Every position is compared with each of the k.
    """
    shape = call.shape(data)
    others = [other for other in range(len(shape)) if other != axis]
    order = [*others, axis]
    _, positions = _first(call, data, axis, k)
    positions = move_axes(call, positions, order)
    column = call.shape(positions)
    all_positions = call.array(np.arange(shape[axis], dtype=np.float32))
    positions = call.reshape(positions, [*column, 1])
    is_chosen = call.add("Equal", positions, all_positions)
    chosen = call.add("Cast", is_chosen, to=FLOAT)
    mask = call.add("ReduceMax", chosen, call.constant([-2]), keepdims=0)
    inverse = [order.index(axis) for axis in range(len(shape))]
    return call.reshape(move_axes(call, mask, inverse), call.shape())


@operator("sort", attributes={"axis": _axis(), "is_ascend": boolean(True)})
def sort(call: OperatorCall) -> ir.Value:
    """Sort every row."""
    data, axis = _rows(call)
    values, _ = _first(call, data, axis, call.shape(data)[axis])
    return values


@operator(
    "argsort",
    attributes={
        "axis": _axis(),
        "is_ascend": boolean(True),
        "dtype": dtype_attribute("float32"),
    },
)
def argsort(call: OperatorCall) -> ir.Value:
    """Write the positions of the numbers of every row, in the order of the numbers."""
    data, axis = _rows(call)
    _, positions = _first(call, data, axis, call.shape(data)[axis])
    return integer_dtypes.mark(positions, result_dtype(call))
