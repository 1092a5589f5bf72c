"""Reductions over some axes. Without keepdims, a reduction of all axes has shape (1,): MXNet has no scalars."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx
import onnx_ir as ir

from mrt.frontend.mxnet.call import Call
from mrt.frontend.mxnet.operators.registry import (
    Attribute,
    Handler,
    flag,
    integer,
    operator,
    optional_integer,
    optional_integers,
    word,
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
    "keepdims": flag(False),
    "exclude": flag(False),
}


def _given_axes(call: Call, name: str = "axis") -> list[int]:
    """No axis at all means every axis."""
    given = call.integers(name)
    axes = [call.axis(axis) for axis in given]
    call.require(len(set(axes)) == len(axes), f"{name}={given} names an axis twice")
    return sorted(axes) or [*range(len(call.shape()))]


def _reduced_axes(call: Call) -> list[int]:
    """No axis at all means every axis, also with exclude."""
    axes = _given_axes(call)
    if call.flag("exclude") and call.integers("axis"):
        return sorted(set(range(len(call.shape()))) - set(axes))
    return axes


def reduce_axes(
    call: Call, target: str, value: ir.Value, axes: Sequence[int]
) -> ir.Value:
    """Emit a reduction of a value of the first input's shape, whose result is shaped as keepdims says."""
    shape = call.shape()
    if not axes:
        return call.emit("Identity", [value])
    everything = len(axes) == len(shape)
    keep = call.flag("keepdims") or everything
    reduced = call.emit(
        target, [value, call.constant(list(axes))], {"keepdims": int(keep)}
    )
    if everything and not call.flag("keepdims") and len(shape) > 1:
        return call.reshape(reduced, [1])
    return reduced


def _reduction(target: str) -> Handler:
    def handler(call: Call) -> ir.Value:
        return reduce_axes(call, target, call.data, _reduced_axes(call))

    return handler


def _reduction_without_nan(target: str, neutral: float) -> Handler:
    def handler(call: Call) -> ir.Value:
        missing = call.emit("IsNaN", [call.data])
        known = call.emit("Where", [missing, call.constant(neutral), call.data])
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
        "out_dtype": word("float32"),
        "keepdims": flag(False),
    },
)
def norm(call: Call) -> ir.Value:
    """The sum of magnitudes or the root of the sum of squares; of two axes the same, not the norm of a matrix."""
    order = call.integer("ord")
    call.require(order in NORMS, f"ord={order}: not supported; supported: 1, 2")
    return reduce_axes(call, NORMS[order], call.data, _given_axes(call))


@operator(
    "moments",
    attributes={"axes": optional_integers(), "keepdims": flag(False)},
    outputs=lambda _: 2,
)
def moments(call: Call) -> list[ir.Value]:
    """Mean, and mean of the squared distances to it."""
    call.require(bool(call.integers("axes")), "no axes, which MXNet refuses")
    axes = _given_axes(call, "axes")
    center = call.emit("ReduceMean", [call.data, call.constant(axes)], {"keepdims": 1})
    distance = call.emit("Sub", [call.data, center])
    squares = call.emit("Mul", [distance, distance])
    return [
        reduce_axes(call, "ReduceMean", value, axes) for value in (call.data, squares)
    ]


def _position(target: str) -> Handler:
    def handler(call: Call) -> ir.Value:
        axis, rank = call.optional_integer("axis"), len(call.shape())
        keep = call.flag("keepdims")
        if axis is not None:
            kept = keep or rank == 1
            return _positions(call, target, call.data, call.axis(axis), keep=kept)
        flat = call.reshape(call.data, [-1]) if rank > 1 else call.data
        found = _positions(call, target, flat, 0, keep=True)
        return call.reshape(found, [1] * rank) if keep and rank > 1 else found

    return handler


def _positions(
    call: Call, target: str, value: ir.Value, axis: int, *, keep: bool
) -> ir.Value:
    """Of the first of equals, as a number."""
    attributes = {"axis": axis, "keepdims": int(keep), "select_last_index": 0}
    return call.emit(
        "Cast", [call.emit(target, [value], attributes)], {"to": onnx.TensorProto.FLOAT}
    )


for _name, _target in {"argmax": "ArgMax", "argmin": "ArgMin"}.items():
    operator(_name, attributes={"axis": optional_integer(), "keepdims": flag(False)})(
        _position(_target)
    )


@operator("argmax_channel")
def argmax_channel(call: Call) -> ir.Value:
    """argmax of axis 1."""
    return _positions(call, "ArgMax", call.data, call.axis(1), keep=False)


@operator(
    "_np_cumsum",
    "cumsum",
    attributes={"axis": optional_integer(), "dtype": word("float32")},
)
def cumsum(call: Call) -> ir.Value:
    """At every place the sum up to it, along an axis or of all in one row."""
    axis = call.optional_integer("axis")
    rows = call.reshape(call.data, [-1]) if axis is None else call.data
    place = call.array(np.array(0 if axis is None else call.axis(axis), np.int64))
    return call.emit("CumSum", [rows, place], {"exclusive": 0, "reverse": 0})
