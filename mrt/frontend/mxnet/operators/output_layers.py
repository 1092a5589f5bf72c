"""Softmax in its several forms, and the output layers that training compares with a label."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from mrt.frontend.mxnet.operator_call import OperatorCall
from mrt.frontend.mxnet.operators.registry import (
    LABEL_SLOT,
    Attribute,
    Values,
    boolean,
    choice,
    ignored,
    integer,
    operator,
    optional_real,
)

OUTSIDE = -1e30  # far below any activation, so that its softmax is 0
SOFTMAX: dict[str, Attribute] = {
    "axis": integer(-1),
    "temperature": optional_real(),
    "dtype": choice("float32"),
}


NO_LENGTH = Attribute(
    boolean(False).parse, False, only=(False, None), none_allowed=True
)


def _softmax_slots(values: Values) -> tuple[str, ...]:
    return ("data", "length") if values["use_length"] else ("data",)


@operator(
    "softmax",
    attributes={
        **SOFTMAX,
        "use_length": Attribute(boolean(False).parse, False, none_allowed=True),
    },
    slots=_softmax_slots,
)
def softmax(call: OperatorCall) -> ir.Value:
    """Write Softmax(x / temperature).

    With use_length, it is the softmax of the first elements, and 0 for the others.
    """
    axis = call.axis(call.int_attribute("axis"))
    if len(call.inputs) == 1:
        return call.add("Softmax", _divided(call), axis=axis)
    shape, length = call.shape(), call.inputs[1]
    expected = [*shape[:axis], *shape[axis + 1 :]]
    length_shape = call.shape(length)
    call.require(
        [*length_shape] == expected,
        f"length of shape {length_shape}; expected {tuple(expected)}",
    )
    place = np.arange(shape[axis], dtype=np.float32).reshape(
        [-1 if i == axis else 1 for i in range(len(shape))]
    )
    lengths = call.reshape(length, [*shape[:axis], 1, *shape[axis + 1 :]])
    inside = call.add("Less", call.array(place), lengths)
    among = call.add("Where", inside, _divided(call), call.constant(OUTSIDE))
    return call.add(
        "Where",
        inside,
        call.add("Softmax", among, axis=axis),
        call.constant(0.0),
    )


@operator("log_softmax", attributes={**SOFTMAX, "use_length": NO_LENGTH})
def log_softmax(call: OperatorCall) -> ir.Value:
    """Write the logarithm of softmax."""
    return call.add(
        "LogSoftmax", _divided(call), axis=call.axis(call.int_attribute("axis"))
    )


@operator("softmin", attributes={**SOFTMAX, "use_length": NO_LENGTH})
def softmin(call: OperatorCall) -> ir.Value:
    """Write the softmax of the negated input."""
    return call.add(
        "Softmax",
        call.add("Neg", _divided(call)),
        axis=call.axis(call.int_attribute("axis")),
    )


def _divided(call: OperatorCall) -> ir.Value:
    temperature = call.optional_float_attribute("temperature")
    if temperature is None or temperature == 1:
        return call.data
    call.require(
        temperature > 0,
        f"temperature={temperature}: expected a positive number",
    )
    return call.add("Div", call.data, call.constant(temperature))


@operator(
    "SoftmaxActivation",
    attributes={"mode": choice("instance", "channel", default="instance")},
)
def softmax_activation(call: OperatorCall) -> ir.Value:
    """Write a Softmax over axis 1 (channel) or the last axis (instance).

    MXNet's documentation of instance mentions flattening, but its code does not flatten.
    """
    channel = call.string_attribute("mode") == "channel"
    call.require_rank(3 if channel else 2)
    axis = 1 if channel else len(call.shape()) - 1
    return call.add("Softmax", call.data, axis=axis)


@operator(
    "SoftmaxOutput",
    "Softmax",
    attributes={
        "multi_output": boolean(False),
        "preserve_shape": boolean(False),
        **ignored(
            "grad_scale",
            "ignore_label",
            "use_ignore",
            "normalization",
            "out_grad",
            "smooth_alpha",
        ),
    },
    slots=("data", LABEL_SLOT),
)
def softmax_output(call: OperatorCall) -> ir.Value:
    """Write a Softmax over axis 1 (multi_output) or the last axis (preserve_shape)."""
    call.require_rank(2)
    rank = len(call.shape())
    multiple = call.bool_attribute("multi_output")
    preserved = call.bool_attribute("preserve_shape")
    call.require(
        rank == 2 or multiple != preserved,
        f"input of shape {call.shape()}: which axis is meant depends on how MXNet was built, "
        "unless exactly one of multi_output and preserve_shape is set",
    )
    return call.add(
        "Softmax", call.data, axis=1 if multiple or rank == 2 else rank - 1
    )


@operator(
    "LinearRegressionOutput",
    "MAERegressionOutput",
    attributes=ignored("grad_scale"),
    slots=("data", LABEL_SLOT),
)
def linear_regression_output(call: OperatorCall) -> ir.Value:
    """Return the input."""
    return call.add("Identity", call.data)


@operator(
    "SVMOutput",
    attributes=ignored("margin", "regularization_coefficient", "use_linear"),
    slots=("data", LABEL_SLOT),
)
def svm_output(call: OperatorCall) -> ir.Value:
    """Return the input."""
    return call.add("Identity", call.data)


@operator(
    "LogisticRegressionOutput",
    attributes=ignored("grad_scale"),
    slots=("data", LABEL_SLOT),
)
def logistic_regression_output(call: OperatorCall) -> ir.Value:
    """Write the sigmoid of the input."""
    return call.add("Sigmoid", call.data)


@operator(
    "MakeLoss",
    attributes=ignored("grad_scale", "valid_thresh", "normalization"),
)
def make_loss(call: OperatorCall) -> ir.Value:
    """Return the input."""
    return call.add("Identity", call.data)
