"""Reductions over some axes.

Without keepdims, a reduction of all axes has shape (1,), because MXNet has no scalars.
"""

from __future__ import annotations

from collections.abc import Sequence

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
    """Return the axes of an attribute in order; all axes where it is empty."""
    signed_axes = call.ints_attribute(name)
    axes = [call.axis(axis) for axis in signed_axes]
    call.require(
        len(set(axes)) == len(axes), f"{name}={signed_axes} names an axis twice"
    )
    return sorted(axes) or [*range(call.rank())]


def _reduced_axes(call: OperatorCall) -> list[int]:
    """Return the given axes or, with exclude, all others.

    If none is given, all axes are returned, also with exclude.
    """
    axes = _given_axes(call)
    if call.bool_attribute("exclude") and call.ints_attribute("axis"):
        return [axis for axis in range(call.rank()) if axis not in axes]
    return axes


def reduce_axes(
    call: OperatorCall, target: str, value: ir.Value, axes: Sequence[int]
) -> ir.Value:
    """Reduce a value that has the first input's shape, with or without `keepdims`."""
    if not axes:
        return call.add("Identity", value)
    keep = call.bool_attribute("keepdims")
    rank = call.rank()
    is_full = len(axes) == rank
    axes_constant = call.constant(list(axes))
    reduced = call.add(
        target, value, axes_constant, keepdims=int(keep or is_full)
    )
    if is_full and not keep and rank > 1:
        return call.reshape(reduced, [1])
    return reduced


def _reduction(target: str) -> Handler:
    def handler(call: OperatorCall) -> ir.Value:
        axes = _reduced_axes(call)
        return reduce_axes(call, target, call.data, axes)

    return handler


def _reduction_without_nan(target: str, neutral: float) -> Handler:
    def handler(call: OperatorCall) -> ir.Value:
        is_nan = call.add("IsNaN", call.data)
        numbers = call.add("Where", is_nan, call.constant(neutral), call.data)
        axes = _reduced_axes(call)
        return reduce_axes(call, target, numbers, axes)

    return handler


for _target, _names in REDUCTIONS.items():
    operator(*_names, attributes=ATTRIBUTES)(_reduction(_target))
for _name, (_target, _neutral) in WITHOUT_NAN.items():
    operator(_name, attributes=ATTRIBUTES)(
        _reduction_without_nan(_target, _neutral)
    )


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
    """Write the sum of magnitudes, or the root of the sum of squares.

    It is still that sum over two axes, not the norm of a matrix.
    """
    order = call.int_attribute("ord")
    call.require(order in NORMS, f"ord={order}: not supported; supported: 1, 2")
    axes = _given_axes(call)
    return reduce_axes(call, NORMS[order], call.data, axes)


@operator(
    "moments",
    attributes={"axes": optional_integers(), "keepdims": boolean(False)},
    outputs=lambda _: 2,
)
def moments(call: OperatorCall) -> list[ir.Value]:
    """Write the mean, and the mean of the squared distances to it."""
    call.require(
        bool(call.ints_attribute("axes")), "no axes, which MXNet refuses"
    )
    axes = _given_axes(call, "axes")
    center = call.add("ReduceMean", call.data, call.constant(axes), keepdims=1)
    distance = call.add("Sub", call.data, center)
    squares = call.add("Mul", distance, distance)
    mean = reduce_axes(call, "ReduceMean", call.data, axes)
    variance = reduce_axes(call, "ReduceMean", squares, axes)
    return [mean, variance]


def _position(target: str) -> Handler:
    def handler(call: OperatorCall) -> ir.Value:
        axis = call.optional_int_attribute("axis")
        keep = call.bool_attribute("keepdims")
        rank = call.rank()
        if axis is not None:
            keep_axis = keep or rank == 1
            return _positions(call, target, call.axis(axis), keep=keep_axis)
        if rank == 1:
            return _positions(call, target, 0, keep=True)
        flat = call.reshape(call.data, [-1])
        position = _positions(call, target, 0, keep=True, value=flat)
        return call.reshape(position, [1] * rank) if keep else position

    return handler


def _positions(
    call: OperatorCall,
    target: str,
    axis: int,
    *,
    keep: bool,
    value: ir.Value | None = None,
) -> ir.Value:
    """Write the position of the first of equal extremes, as a float.

    The value is the first input by default.
    """
    position = call.add(
        target,
        call.data if value is None else value,
        axis=axis,
        keepdims=int(keep),
        select_last_index=0,
    )
    return call.add("Cast", position, to=onnx.TensorProto.FLOAT)


POSITION = {"axis": optional_integer(), "keepdims": boolean(False)}
operator("argmax", attributes=POSITION)(_position("ArgMax"))
operator("argmin", attributes=POSITION)(_position("ArgMin"))


@operator("argmax_channel")
def argmax_channel(call: OperatorCall) -> ir.Value:
    """Write an argmax of axis 1."""
    return _positions(call, "ArgMax", call.axis(1), keep=False)


@operator(
    "_np_cumsum",
    "cumsum",
    attributes={"axis": optional_integer(), "dtype": choice("float32")},
)
def cumsum(call: OperatorCall) -> ir.Value:
    """Write the sums of all numbers up to each, along an axis or of all in one row."""
    axis = call.optional_int_attribute("axis")
    if axis is None:
        rows = call.reshape(call.data, [-1])
        axis_constant = call.index(0)
    else:
        rows = call.data
        axis_constant = call.index(call.axis(axis))
    return call.add("CumSum", rows, axis_constant, exclusive=0, reverse=0)
