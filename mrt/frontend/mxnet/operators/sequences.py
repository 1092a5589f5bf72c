"""Sequences of several lengths: along one axis time, along the other the batch, with a length for each of it.

A length is a number here, and its fraction is dropped. Without lengths every sequence is as long as the axis.
"""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from mrt.frontend.mxnet.operator_call import OperatorCall
from mrt.frontend.mxnet.operators.indexing import as_integers
from mrt.frontend.mxnet.operators.registry import (
    Attribute,
    Values,
    boolean,
    integer,
    operator,
    real,
)

SEQUENCE: dict[str, Attribute] = {
    "use_sequence_length": boolean(False),
    "axis": integer(0),
}


def _slots(values: Values) -> tuple[str, ...]:
    return ("data", "sequence_length") if values["use_sequence_length"] else ("data",)


def _time_axis(call: OperatorCall) -> int:
    """0 or 1; the other one is the batch. A length for each of the batch is there, if lengths are."""
    axis, shape = call.int_attribute("axis"), call.shape()
    call.require(axis in (0, 1), f"axis={axis}: not supported; supported: 0, 1")
    call.require_rank(2)
    if len(call.inputs) == 2:
        found, batch = call.shape(call.inputs[1]), shape[1 - axis]
        call.require(
            found == (batch,), f"lengths of shape {found}; expected ({batch},)"
        )
    return axis


def _steps(call: OperatorCall, comparison: str, axis: int) -> ir.Value:
    """How the length of every sequence compares with 1, 2, 3, ..., along the axis of time and that of the batch."""
    shape = call.shape()
    ones = [1] * (len(shape) - 2)
    steps, batch = [1, 1], [1, 1]
    steps[axis], batch[1 - axis] = shape[axis], shape[1 - axis]
    lengths = call.reshape(as_integers(call, call.inputs[1]), [*batch, *ones])
    numbers = call.array(
        np.arange(1, shape[axis] + 1, dtype=np.int64).reshape([*steps, *ones])
    )
    return call.add(comparison, lengths, numbers)


@operator("SequenceMask", attributes={**SEQUENCE, "value": real(0.0)}, slots=_slots)
def sequence_mask(call: OperatorCall) -> ir.Value:
    """A number wherever a sequence has ended: step t exists if the length is at least t, counted from 1."""
    axis = _time_axis(call)
    if len(call.inputs) == 1:
        return call.add("Identity", call.data)
    exists = _steps(call, "GreaterOrEqual", axis)
    return call.add(
        "Where", exists, call.data, call.constant(call.float_attribute("value"))
    )


@operator("SequenceLast", attributes=SEQUENCE, slots=_slots)
def sequence_last(call: OperatorCall) -> ir.Value:
    """The last step of every sequence: the sum of the steps, of which that one alone is not 0."""
    axis, shape = _time_axis(call), call.shape()
    if len(call.inputs) == 1:
        return call.add(
            "Gather",
            call.data,
            call.array(np.array(shape[axis] - 1, np.int64)),
            axis=axis,
        )
    last = call.add("Where", _steps(call, "Equal", axis), call.data, call.constant(0.0))
    return call.add("ReduceSum", last, call.constant([axis]), keepdims=0)


@operator("SequenceReverse", attributes=SEQUENCE, slots=_slots)
def sequence_reverse(call: OperatorCall) -> ir.Value:
    """Every sequence from its end; what lies behind the end stays."""
    call.require(
        call.int_attribute("axis") == 0, "axis=1, which MXNet refuses; expected 0"
    )
    _time_axis(call)
    if len(call.inputs) == 1:
        bounds = [call.constant([number]) for number in (-1, -(2**31), 0, -1)]
        return call.add("Slice", call.data, *bounds)
    lengths = as_integers(call, call.inputs[1])
    return call.add("ReverseSequence", call.data, lengths, time_axis=0, batch_axis=1)
