"""The dense layer, the activations, dropout."""

from __future__ import annotations

import math

import onnx_ir as ir

from mrt.frontend.mxnet.operator_call import OperatorCall
from mrt.frontend.mxnet.operators.registry import (
    Values,
    boolean,
    choice,
    ignored,
    operator,
    positive,
    real,
)


def with_bias(values: Values) -> tuple[str, ...]:
    """Return the input slots: data and weight, and bias unless no_bias."""
    return (
        ("data", "weight") if values["no_bias"] else ("data", "weight", "bias")
    )


@operator(
    "FullyConnected",
    "_sparse_FullyConnected",
    attributes={
        "num_hidden": positive(),
        "no_bias": boolean(False),
        "flatten": boolean(True),
    },
    slots=with_bias,
)
def fully_connected(call: OperatorCall) -> ir.Value:
    """Write a Gemm on rows: the input flattened to a matrix or, with flatten=False, its last axis.

    The bias alone remains of zeros, such as the first state of an unrolled cell.
    """
    shape = call.shape()
    hidden = call.int_attribute("num_hidden")
    is_flattened = call.bool_attribute("flatten")
    call.require_rank(1)
    rows = call.data
    if is_flattened and len(shape) != 2:
        rows = call.add("Flatten", rows, axis=1)
    elif len(shape) != 2:
        rows = call.reshape(rows, [math.prod(shape[:-1]), shape[-1]])
    result = _affine(call, rows, hidden)
    if is_flattened or len(shape) == 2:
        return result
    return call.reshape(result, [*shape[:-1], hidden])


def _affine(call: OperatorCall, rows: ir.Value, hidden: int) -> ir.Value:
    count, width = call.shape(rows)
    weight = call.parameter(1, (hidden, width))
    operands = [rows, weight]
    if len(call.inputs) == 3:
        bias = call.parameter(2, (hidden,))
        if _is_zeros(call.data):
            return call.add("Expand", bias, call.constant([count, hidden]))
        operands.append(bias)
    return call.add("Gemm", *operands, alpha=1.0, beta=1.0, transA=0, transB=1)


def _is_zeros(value: ir.Value) -> bool:
    """Whether `_zeros` made this value."""
    node = value.producer()
    if node is None or node.op_type != "Identity":
        return False
    constant = node.inputs[0]
    if constant is None or constant.const_value is None:
        return False
    return not constant.const_value.numpy().any()


ACTIVATIONS = {
    "relu": "Relu",
    "sigmoid": "Sigmoid",
    "tanh": "Tanh",
    "softrelu": "Softplus",
    "softsign": "Softsign",
}


@operator(
    "Activation", attributes={"act_type": choice(*ACTIVATIONS, required=True)}
)
def activation(call: OperatorCall) -> ir.Value:
    """Write a function of each element."""
    return call.add(ACTIVATIONS[call.string_attribute("act_type")], call.data)


def leaky_slots(values: Values) -> tuple[str, ...]:
    """Return the input slots; gamma is the slope of prelu."""
    return ("data", "gamma") if values["act_type"] == "prelu" else ("data",)


@operator(
    "LeakyReLU",
    attributes={
        "act_type": choice(
            "leaky", "elu", "prelu", "selu", "gelu", "rrelu", default="leaky"
        ),
        "slope": real(0.25),
        "lower_bound": real(0.125),
        "upper_bound": real(0.334),
    },
    slots=leaky_slots,
)
def leaky_relu(call: OperatorCall) -> ir.Value:
    """Write an activation; rrelu has the mean slope at inference, elu has the slope as alpha."""
    match call.string_attribute("act_type"):
        case "leaky":
            return call.add(
                "LeakyRelu", call.data, alpha=call.float_attribute("slope")
            )
        case "rrelu":
            slope = (
                call.float_attribute("lower_bound")
                + call.float_attribute("upper_bound")
            ) / 2
            return call.add("LeakyRelu", call.data, alpha=slope)
        case "elu":
            return call.add(
                "Elu", call.data, alpha=call.float_attribute("slope")
            )
        case "selu":
            return call.add("Selu", call.data)
        case "gelu":
            return call.add("Gelu", call.data, approximate="none")
    return _prelu(call)


def _prelu(call: OperatorCall) -> ir.Value:
    """Write a PRelu with one slope for all, or one per channel.

    Channels are axis 1, or the only axis of a vector.
    """
    call.require_rank(1)
    shape = call.shape()
    channels = shape[1] if len(shape) > 1 else shape[0]
    slope = call.parameter(1, (channels,), (1,))
    if call.shape(slope) != (1,) and len(shape) > 2:
        slope = call.reshape(slope, [channels] + [1] * (len(shape) - 2))
    return call.add("PRelu", call.data, slope)


@operator(
    "Dropout",
    attributes={
        "mode": choice("training", default="training"),
        **ignored("p", "axes", "cudnn_off"),
    },
)
def dropout(call: OperatorCall) -> ir.Value:
    """Return the input: at inference, the supported mode drops nothing."""
    return call.add("Identity", call.data)
