"""Reductions over some axes. Without keepdims, a reduction of all axes has shape (1,): MXNet has no scalars."""

from __future__ import annotations

import onnx_ir as ir

from mrt.frontend.mxnet.call import Call
from mrt.frontend.mxnet.operators.registry import Attribute, Handler, flag, operator, optional_integers

REDUCTIONS = {
    "ReduceMean": ("mean",),
    "ReduceSum": ("sum", "sum_axis"),
    "ReduceMax": ("max", "max_axis"),
    "ReduceMin": ("min", "min_axis"),
    "ReduceProd": ("prod",),
}
ATTRIBUTES: dict[str, Attribute] = {
    "axis": optional_integers(),
    "keepdims": flag(False),
    "exclude": flag(False),
}


def _reduced_axes(call: Call) -> list[int]:
    """No axis at all means every axis, also with exclude."""
    rank = len(call.shape())
    given = call.integers("axis")
    axes = [call.axis(axis) for axis in given]
    call.require(len(set(axes)) == len(axes), f"axis={given} names an axis twice")
    if not axes:
        return [*range(rank)]
    return sorted(set(range(rank)) - set(axes)) if call.flag("exclude") else sorted(axes)


def _reduction(target: str) -> Handler:
    def handler(call: Call) -> ir.Value:
        axes, shape = _reduced_axes(call), call.shape()
        if not axes:
            return call.emit("Identity", [call.data])
        everything = len(axes) == len(shape)
        keep = call.flag("keepdims") or everything
        reduced = call.emit(target, [call.data, call.constant(axes)], {"keepdims": int(keep)})
        if everything and not call.flag("keepdims") and len(shape) > 1:
            return call.reshape(reduced, [1])
        return reduced

    return handler


for _target, _names in REDUCTIONS.items():
    operator(*_names, attributes=ATTRIBUTES)(_reduction(_target))
