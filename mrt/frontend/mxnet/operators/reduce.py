"""Reductions over some axes. Without keepdims, a reduction of all axes has shape (1,): MXNet has no scalars."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx
import onnx_ir as ir

from mrt.frontend.mxnet.operator_call import OperatorCall
from mrt.frontend.mxnet.operators.registry import (
    Attribute,
    Handler,
    boolean,
    choice,
    integer,
    operator,
    optional_integer,
    optional_integers,
)

REDUCTIONS = {
    "ReduceMean": ("mean",),
    "ReduceSum": ("sum", "sum_axis"),
    "ReduceMax": ("max", "max_axis"),
    "ReduceMin": ("min", "min_axis"),
    "ReduceProd": ("prod",),
}
WITHOUT_NAN = {"nansum": ("ReduceSum", 0.0), "nanprod": ("ReduceProd", 1.0)}
NORMS = {1: "ReduceL1", 2: "ReduceL2"}
ATTRIBUTES: dict[str, Attribute] = {
    "axis": optional_integers(),
    "keepdims": boolean(False),
    "exclude": boolean(False),
}


def _given_axes(call: OperatorCall, name: str = "axis") -> list[int]:
    """No axis at all means every axis."""
    given = call.ints_attribute(name)
    axes = [call.axis(axis) for axis in given]
    call.require(len(set(axes)) == len(axes), f"{name}={given} names an axis twice")
    return sorted(axes) or [*range(len(call.shape()))]


def _reduced_axes(call: OperatorCall) -> list[int]:
    """No axis at all means every axis, also with exclude."""
    axes = _given_axes(call)
    if call.bool_attribute("exclude") and call.ints_attribute("axis"):
        return sorted(set(range(len(call.shape()))) - set(axes))
    return axes


def reduce_axes(
    call: OperatorCall, target: str, value: ir.Value, axes: Sequence[int]
) -> ir.Value:
    """Emit a reduction of a value of the first input's shape, whose result is shaped as keepdims says."""
    shape = call.shape()
    if not axes:
        return call.add("Identity", value)
    everything = len(axes) == len(shape)
    keep = call.bool_attribute("keepdims") or everything
    reduced = call.add(target, value, call.constant(list(axes)), keepdims=int(keep))
    if everything and not call.bool_attribute("keepdims") and len(shape) > 1:
        return call.reshape(reduced, [1])
    return reduced


def _reduction(target: str) -> Handler:
    def handler(call: OperatorCall) -> ir.Value:
        return reduce_axes(call, target, call.data, _reduced_axes(call))

    return handler


def _reduction_without_nan(target: str, neutral: float) -> Handler:
    def handler(call: OperatorCall) -> ir.Value:
        missing = call.add("IsNaN", call.data)
        known = call.add("Where", missing, call.constant(neutral), call.data)
        return reduce_axes(call, target, known, _reduced_axes(call))

    return handler


for _target, _names in REDUCTIONS.items():
    operator(*_names, attributes=ATTRIBUTES)(_reduction(_target))
for _name, (_target, _neutral) in WITHOUT_NAN.items():
    operator(_name, attributes=ATTRIBUTES)(_reduction_without_nan(_target, _neutral))


@operator(
    "norm",
    attributes={
        "ord": integer(2),
        "axis": optional_integers(),
        "out_dtype": choice("float32"),
        "keepdims": boolean(False),
    },
)
def norm(call: OperatorCall) -> ir.Value:
    """The sum of magnitudes or the root of the sum of squares; of two axes the same, not the norm of a matrix."""
    order = call.int_attribute("ord")
    call.require(order in NORMS, f"ord={order}: not supported; supported: 1, 2")
    return reduce_axes(call, NORMS[order], call.data, _given_axes(call))


@operator(
    "moments",
    attributes={"axes": optional_integers(), "keepdims": boolean(False)},
    outputs=lambda _: 2,
)
def moments(call: OperatorCall) -> list[ir.Value]:
    """Mean, and mean of the squared distances to it."""
    call.require(bool(call.ints_attribute("axes")), "no axes, which MXNet refuses")
    axes = _given_axes(call, "axes")
    center = call.add("ReduceMean", call.data, call.constant(axes), keepdims=1)
    distance = call.add("Sub", call.data, center)
    squares = call.add("Mul", distance, distance)
    return [
        reduce_axes(call, "ReduceMean", value, axes) for value in (call.data, squares)
    ]


def _position(target: str) -> Handler:
    def handler(call: OperatorCall) -> ir.Value:
        axis, rank = call.optional_int_attribute("axis"), len(call.shape())
        keep = call.bool_attribute("keepdims")
        if axis is not None:
            kept = keep or rank == 1
            return _positions(call, target, call.data, call.axis(axis), keep=kept)
        flat = call.reshape(call.data, [-1]) if rank > 1 else call.data
        found = _positions(call, target, flat, 0, keep=True)
        return call.reshape(found, [1] * rank) if keep and rank > 1 else found

    return handler


def _positions(
    call: OperatorCall, target: str, value: ir.Value, axis: int, *, keep: bool
) -> ir.Value:
    """Of the first of equals, as a number."""
    attributes = {"axis": axis, "keepdims": int(keep), "select_last_index": 0}
    return call.add(
        "Cast", call.add(target, value, **attributes), to=onnx.TensorProto.FLOAT
    )


for _name, _target in {"argmax": "ArgMax", "argmin": "ArgMin"}.items():
    operator(
        _name, attributes={"axis": optional_integer(), "keepdims": boolean(False)}
    )(_position(_target))


@operator("argmax_channel")
def argmax_channel(call: OperatorCall) -> ir.Value:
    """argmax of axis 1."""
    return _positions(call, "ArgMax", call.data, call.axis(1), keep=False)


@operator(
    "_np_cumsum",
    "cumsum",
    attributes={"axis": optional_integer(), "dtype": choice("float32")},
)
def cumsum(call: OperatorCall) -> ir.Value:
    """At every place the sum up to it, along an axis or of all in one row."""
    axis = call.optional_int_attribute("axis")
    rows = call.reshape(call.data, [-1]) if axis is None else call.data
    place = call.array(np.array(0 if axis is None else call.axis(axis), np.int64))
    return call.add("CumSum", rows, place, exclusive=0, reverse=0)
