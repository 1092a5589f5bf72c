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
    """data and weight, and bias unless no_bias."""
    return ("data", "weight") if values["no_bias"] else ("data", "weight", "bias")


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
    """Gemm on rows: all but the first axis flattened, or (flatten=False) every last axis a row.

    Of zeros, as the first state of an unrolled cell is, only the bias remains.
    """
    shape, hidden = call.shape(), call.int_attribute("num_hidden")
    flattened = call.bool_attribute("flatten")
    call.require_rank(1)
    rows = call.data
    if flattened and len(shape) != 2:
        rows = call.add("Flatten", rows, axis=1)
    elif len(shape) != 2:
        rows = call.reshape(rows, [math.prod(shape[:-1]), shape[-1]])
    width = call.shape(rows)[1]
    weight = call.parameter(1, (hidden, width))
    bias = [call.parameter(2, (hidden,))] if len(call.inputs) == 3 else []
    if bias and _is_zeros(call.data):
        product = call.add(
            "Expand", *bias, call.constant([call.shape(rows)[0], hidden])
        )
    else:
        attributes = {"alpha": 1.0, "beta": 1.0, "transA": 0, "transB": 1}
        product = call.add("Gemm", rows, weight, *bias, **attributes)
    return (
        product
        if flattened or len(shape) == 2
        else call.reshape(product, [*shape[:-1], hidden])
    )


def _is_zeros(value: ir.Value) -> bool:
    """Whether it was made of zeros by `_zeros`."""
    node = value.producer()
    source = node.inputs[0] if node is not None and node.op_type == "Identity" else None
    return (
        source is not None
        and source.const_value is not None
        and not source.const_value.numpy().any()
    )


ACTIVATIONS = {
    "relu": "Relu",
    "sigmoid": "Sigmoid",
    "tanh": "Tanh",
    "softrelu": "Softplus",
    "softsign": "Softsign",
}


@operator("Activation", attributes={"act_type": choice(*ACTIVATIONS, required=True)})
def activation(call: OperatorCall) -> ir.Value:
    """A function of each element."""
    return call.add(ACTIVATIONS[call.string_attribute("act_type")], call.data)


def leaky_slots(values: Values) -> tuple[str, ...]:
    """gamma is the slope of prelu."""
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
    """leaky and rrelu (at inference, the mean slope): LeakyRelu. The slope is also the alpha of elu."""
    match call.string_attribute("act_type"):
        case "leaky":
            return call.add("LeakyRelu", call.data, alpha=call.float_attribute("slope"))
        case "rrelu":
            slope = (
                call.float_attribute("lower_bound")
                + call.float_attribute("upper_bound")
            ) / 2
            return call.add("LeakyRelu", call.data, alpha=slope)
        case "elu":
            return call.add("Elu", call.data, alpha=call.float_attribute("slope"))
        case "selu":
            return call.add("Selu", call.data)
        case "gelu":
            return call.add("Gelu", call.data, approximate="none")
    return _prelu(call)


def _prelu(call: OperatorCall) -> ir.Value:
    """One slope for all, or one per channel (axis 1; of a vector, each element is one)."""
    call.require_rank(1)
    shape = call.shape()
    slope = call.parameter(1, (shape[1] if len(shape) > 1 else shape[0],), (1,))
    if call.shape(slope) != (1,) and len(shape) > 2:
        slope = call.reshape(slope, [shape[1], *[1] * (len(shape) - 2)])
    return call.add("PRelu", call.data, slope)


@operator(
    "Dropout",
    attributes={
        "mode": choice("training", default="training"),
        **ignored("p", "axes", "cudnn_off"),
    },
)
def dropout(call: OperatorCall) -> ir.Value:
    """Nothing at inference, in the mode that is supported."""
    return call.add("Identity", call.data)
