"""Sequences of several lengths: one axis is time, the other the batch, with a length each.

A length is float32 here, and its fraction is dropped. Without lengths every sequence is
as long as the axis.
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
    if values["use_sequence_length"]:
        return ("data", "sequence_length")
    return ("data",)


def _time_axis(call: OperatorCall) -> int:
    """Return the axis of time, 0 or 1; the other one is the batch.

    Refuse a node with lengths that are not one for each sequence of the batch.
    """
    axis = call.int_attribute("axis")
    call.require(axis in (0, 1), f"axis={axis}: not supported; supported: 0, 1")
    call.require_rank(2)
    if len(call.inputs) == 2:
        lengths = call.shape(call.inputs[1])
        batch = call.shape()[1 - axis]
        call.require(
            lengths == (batch,),
            f"lengths of shape {lengths}; expected ({batch},)",
        )
    return axis


def _compare_lengths(
    call: OperatorCall, comparison: str, axis: int
) -> ir.Value:
    """Compare the length of every sequence with the steps 1, 2, 3, ... of time."""
    shape = call.shape()
    step_shape, batch_shape = [1] * len(shape), [1] * len(shape)
    step_shape[axis] = shape[axis]
    batch_shape[1 - axis] = shape[1 - axis]
    lengths = call.reshape(as_integers(call, call.inputs[1]), batch_shape)
    steps = np.arange(1, shape[axis] + 1, dtype=np.int64)
    return call.add(comparison, lengths, call.array(steps.reshape(step_shape)))


@operator(
    "SequenceMask", attributes={**SEQUENCE, "value": real(0.0)}, slots=_slots
)
def sequence_mask(call: OperatorCall) -> ir.Value:
    """Write a number after the end of a sequence: step t, counted from 1, exists if t <= length."""
    axis = _time_axis(call)
    if len(call.inputs) == 1:
        return call.add("Identity", call.data)
    exists = _compare_lengths(call, "GreaterOrEqual", axis)
    filler = call.constant(call.float_attribute("value"))
    return call.add("Where", exists, call.data, filler)


@operator("SequenceLast", attributes=SEQUENCE, slots=_slots)
def sequence_last(call: OperatorCall) -> ir.Value:
    """Write the last step of every sequence: the sum of steps after all others are set to 0."""
    axis = _time_axis(call)
    if len(call.inputs) == 1:
        last_index = call.index(call.shape()[axis] - 1)
        return call.add("Gather", call.data, last_index, axis=axis)
    is_last = _compare_lengths(call, "Equal", axis)
    last = call.add("Where", is_last, call.data, call.constant(0.0))
    return call.add("ReduceSum", last, call.constant([axis]), keepdims=0)


@operator("SequenceReverse", attributes=SEQUENCE, slots=_slots)
def sequence_reverse(call: OperatorCall) -> ir.Value:
    """Reverse every sequence from its last step to its first; steps after its end stay."""
    call.require(
        call.int_attribute("axis") == 0,
        "axis=1, which MXNet refuses; expected 0",
    )
    _time_axis(call)
    if len(call.inputs) == 1:
        # start, end (before the first step), axis, step
        bounds = [call.constant([number]) for number in (-1, -(2**31), 0, -1)]
        return call.add("Slice", call.data, *bounds)
    lengths = as_integers(call, call.inputs[1])
    return call.add(
        "ReverseSequence", call.data, lengths, time_axis=0, batch_axis=1
    )
