"""Gathering by index; an index is float32 here, and its fraction is dropped.

An index outside the axis is clipped or wrapped. In the mode 'raise' MXNet fails on such
an index, so that clipping changes no answer of MXNet's.
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
    """Return the index without its fraction, as int64."""
    return call.add("Cast", index, to=INT64)


def inside(
    call: OperatorCall, index: ir.Value, size: int, mode: str
) -> ir.Value:
    """Return the index as an integer from 0 to size - 1, wrapped or clipped."""
    if mode == "wrap":
        integers = as_integers(call, index)
        return call.add("Mod", integers, call.index(size), fmod=0)
    largest = float(size - 1)
    clipped = call.add(
        "Clip", index, call.constant(0.0), call.constant(largest)
    )
    return as_integers(call, clipped)


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
    """Write rows of the weight; an index outside is clipped."""
    rows = call.int_attribute("input_dim")
    columns = call.int_attribute("output_dim")
    weight = call.parameter(1, (rows, columns))
    index = inside(call, call.data, rows, "clip")
    return call.add("Gather", weight, index, axis=0)


@operator(
    "take",
    attributes={
        "axis": integer(0),
        "mode": choice("clip", "wrap", "raise", default="clip"),
    },
    slots=("a", "indices"),
)
def take(call: OperatorCall) -> ir.Value:
    """Write slices along an axis, in the shape of the indices."""
    axis = call.axis_attribute()
    size = call.shape()[axis]
    index = inside(call, call.inputs[1], size, call.string_attribute("mode"))
    return call.add("Gather", call.data, index, axis=axis)


def _one_element(call: OperatorCall, axis: int, mode: str) -> ir.Value:
    """Return one element of every row along the axis, which stays with size 1."""
    shape = list(call.shape())
    index = inside(call, call.inputs[1], shape[axis], mode)
    shape[axis] = 1
    index = call.reshape(index, shape)
    return call.add("GatherElements", call.data, index, axis=axis)


@operator("batch_take", slots=("a", "indices"))
def batch_take(call: OperatorCall) -> ir.Value:
    """Return one element of every row of a matrix; an index outside is clipped."""
    call.require_rank(2, 2)
    rows = call.shape()[0]
    index_shape = call.shape(call.inputs[1])
    count = math.prod(index_shape)
    call.require(count == rows, f"{count} indices for {rows} rows")
    return call.reshape(_one_element(call, 1, "clip"), index_shape)


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
    """Return one element of every row along an axis.

    The index has the shape of the input, with size 1 along the axis or without the axis.
    """
    shape = call.shape()
    axis = call.axis_attribute()
    without = shape[:axis] + shape[axis + 1 :]
    kept = (*shape[:axis], 1, *shape[axis + 1 :])
    index_shape = call.shape(call.inputs[1])
    call.require(
        index_shape in (kept, without or (1,)),
        f"an index of shape {index_shape}; expected {without or (1,)} or {kept}",
    )
    picked = _one_element(call, axis, call.string_attribute("mode"))
    if call.bool_attribute("keepdims") or not without:
        return picked
    return call.reshape(picked, without)


@operator("gather_nd", slots=("data", "indices"))
def gather_nd(call: OperatorCall) -> ir.Value:
    """Write elements or slices by coordinates, which lie along the first axis of the indices.

    A negative coordinate counts from the end.
    """
    shape = call.shape()
    index_shape = call.shape(call.inputs[1])
    fits = len(index_shape) >= 2 and index_shape[0] <= len(shape)
    call.require(
        fits,
        f"indices of shape {index_shape} for {shape}; expected coordinates, "
        "then at least one axis",
    )
    indices = as_integers(call, call.inputs[1])
    indices = move_axes(call, indices, [*range(1, len(index_shape)), 0])
    return call.add("GatherND", call.data, indices, batch_dims=0)


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
    """Write a new last axis, with on at the index and off elsewhere.

    An index outside is off everywhere; ONNX's OneHot would count a negative one from the
    end.
    """
    shape = call.shape()
    depth = call.int_attribute("depth")
    call.require(
        math.prod(shape) * depth <= MAX_ELEMENTS,
        f"depth={depth} of {shape}: more than 2^28 numbers",
    )
    index = call.reshape(as_integers(call, call.data), [*shape, 1])
    classes = call.array(np.arange(depth, dtype=np.int64))
    is_on = call.add("Equal", index, classes)
    result = call.add("Cast", is_on, to=FLOAT)
    dtype = result_dtype(call)
    on = call.float_attribute("on_value")
    off = call.float_attribute("off_value")
    if dtype not in FLOATS:
        on, off = float(math.trunc(on)), float(math.trunc(off))
    if on - off != 1:
        result = call.add("Mul", result, call.constant(on - off))
    if off != 0:
        result = call.add("Add", result, call.constant(off))
    return integer_dtypes.mark(result, dtype)
