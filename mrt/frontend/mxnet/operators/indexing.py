"""Reading by index. An index is a number here: its fraction is dropped, then it is clipped or wrapped into the axis.

In the mode 'raise' MXNet fails on an index outside; inside, clipping changes nothing.
"""

from __future__ import annotations

import math

import numpy as np
import onnx
import onnx_ir as ir

from mrt.frontend.mxnet import integer_dtypes
from mrt.frontend.mxnet.graph_builder import MAX_ELEMENTS
from mrt.frontend.mxnet.operator_call import OperatorCall
from mrt.frontend.mxnet.operators.casts import (
    FLOATS,
    dtype_attribute,
    floats_only,
    result_dtype,
)
from mrt.frontend.mxnet.operators.linear_algebra import move_axes
from mrt.frontend.mxnet.operators.registry import (
    Attribute,
    boolean,
    choice,
    ignored,
    integer,
    operator,
    positive,
    real,
)

FLOAT, INT64 = onnx.TensorProto.FLOAT, onnx.TensorProto.INT64
LAST: Attribute = integer(-1)


def as_integers(call: OperatorCall, index: ir.Value) -> ir.Value:
    """The index without its fraction, as an integer."""
    return call.add("Cast", index, to=INT64)


def inside(call: OperatorCall, index: ir.Value, size: int, mode: str) -> ir.Value:
    """The index as an integer from 0 to size - 1."""
    if mode == "wrap":
        return call.add(
            "Mod",
            as_integers(call, index),
            call.array(np.array(size, np.int64)),
            fmod=0,
        )
    return as_integers(
        call,
        call.add("Clip", index, call.constant(0.0), call.constant(float(size - 1))),
    )


@operator(
    "Embedding",
    "_contrib_SparseEmbedding",
    attributes={
        "input_dim": positive(),
        "output_dim": positive(),
        "dtype": floats_only(),
        **ignored("sparse_grad", "deterministic"),
    },
    slots=("data", "weight"),
)
def embedding(call: OperatorCall) -> ir.Value:
    """Rows of the weight; an index outside is clipped."""
    rows, columns = call.int_attribute("input_dim"), call.int_attribute("output_dim")
    weight = call.parameter(1, (rows, columns))
    return call.add("Gather", weight, inside(call, call.data, rows, "clip"), axis=0)


@operator(
    "take",
    attributes={
        "axis": integer(0),
        "mode": choice("clip", "wrap", "raise", default="clip"),
    },
    slots=("a", "indices"),
)
def take(call: OperatorCall) -> ir.Value:
    """Slices along an axis, in the shape of the indices."""
    axis = call.axis(call.int_attribute("axis"))
    index = inside(
        call, call.inputs[1], call.shape()[axis], call.string_attribute("mode")
    )
    return call.add("Gather", call.data, index, axis=axis)


def _one_of_each(call: OperatorCall, axis: int, mode: str) -> ir.Value:
    """One element of every row along the axis, which stays with size 1."""
    shape = list(call.shape())
    size = shape[axis]
    shape[axis] = 1
    index = inside(call, call.inputs[1], size, mode)
    return call.add("GatherElements", call.data, call.reshape(index, shape), axis=axis)


@operator("batch_take", slots=("a", "indices"))
def batch_take(call: OperatorCall) -> ir.Value:
    """One element of every row of a matrix, clipped."""
    call.require_rank(2, 2)
    rows = call.shape()[0]
    found = math.prod(call.shape(call.inputs[1]))
    call.require(found == rows, f"{found} indices for {rows} rows")
    return call.reshape(_one_of_each(call, 1, "clip"), call.shape(call.inputs[1]))


@operator(
    "pick",
    "choose_element_0index",
    attributes={
        "axis": LAST,
        "keepdims": boolean(False),
        "mode": choice("clip", "wrap", default="clip"),
    },
    slots=("data", "index"),
)
def pick(call: OperatorCall) -> ir.Value:
    """One element of every row along an axis; the index has the shape of the input with or without that axis."""
    shape, axis = call.shape(), call.axis(call.int_attribute("axis"))
    without = shape[:axis] + shape[axis + 1 :]
    kept = (*shape[:axis], 1, *shape[axis + 1 :])
    given = call.shape(call.inputs[1])
    call.require(
        given in (kept, without or (1,)),
        f"an index of shape {given}; expected {without or (1,)} or {kept}",
    )
    picked = _one_of_each(call, axis, call.string_attribute("mode"))
    return (
        picked
        if call.bool_attribute("keepdims") or not without
        else call.reshape(picked, without)
    )


@operator("gather_nd", slots=("data", "indices"))
def gather_nd(call: OperatorCall) -> ir.Value:
    """Elements or slices by coordinates, which stand along the first axis of the indices; negative from the end."""
    given, shape = call.shape(call.inputs[1]), call.shape()
    fits = len(given) >= 2 and given[0] <= len(shape)
    call.require(
        fits,
        f"indices of shape {given} for {shape}; expected coordinates, then at least one axis",
    )
    last = move_axes(
        call, as_integers(call, call.inputs[1]), [*range(1, len(given)), 0]
    )
    return call.add("GatherND", call.data, last, batch_dims=0)


@operator(
    "one_hot",
    attributes={
        "depth": positive(),
        "on_value": real(1.0),
        "off_value": real(0.0),
        "dtype": dtype_attribute("float32"),
    },
    slots=("indices",),
)
def one_hot(call: OperatorCall) -> ir.Value:
    """A new last axis, on at the index; nowhere if that lies outside, where ONNX's would count from the end."""
    shape, depth = call.shape(), call.int_attribute("depth")
    call.require(
        math.prod(shape) * depth <= MAX_ELEMENTS,
        f"depth={depth} of {shape}: more than 2^28 numbers",
    )
    index = call.reshape(as_integers(call, call.data), [*shape, 1])
    hot = call.add("Equal", index, call.array(np.arange(depth, dtype=np.int64)))
    number = call.add("Cast", hot, to=FLOAT)
    dtype = result_dtype(call)
    on, off = (
        call.float_attribute(name)
        if dtype in FLOATS
        else float(math.trunc(call.float_attribute(name)))
        for name in ("on_value", "off_value")
    )
    if on - off != 1:
        number = call.add("Mul", number, call.constant(on - off))
    if off != 0:
        number = call.add("Add", number, call.constant(off))
    return integer_dtypes.mark(number, dtype)
