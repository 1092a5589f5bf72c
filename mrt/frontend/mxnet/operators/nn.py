"""Layers with parameters, and what surrounds them: convolution, dense, batch normalisation, activations, dropout."""

from __future__ import annotations

import math
from collections.abc import Sequence

import onnx_ir as ir

from mrt.frontend.mxnet.call import Call
from mrt.frontend.mxnet.operators.registry import (
    Attribute,
    Values,
    flag,
    ignored,
    integer,
    integers,
    operator,
    positive,
    real,
    word,
)
from mrt.frontend.mxnet.writer import Attributes

LAYOUTS = word("NCW", "NCHW", "NCDHW")
SPATIAL = {1: "NCW", 2: "NCHW", 3: "NCDHW"}


def with_bias(values: Values) -> tuple[str, ...]:
    """data and weight, and bias unless no_bias."""
    return ("data", "weight") if values["no_bias"] else ("data", "weight", "bias")


def window_attribute(call: Call, name: str, default: int, least: int) -> list[int]:
    """One number per spatial axis of the kernel; () is the default for each."""
    rank = len(call.integers("kernel"))
    numbers = call.integers(name) or (default,) * rank
    call.require(len(numbers) == rank, f"{name}={numbers} does not fit kernel={call.integers('kernel')}")
    call.require(min(numbers) >= least, f"{name}={numbers}: expected at least {least} each")
    return list(numbers)


def require_image(call: Call, kernel: Sequence[int]) -> None:
    """The input is (batch, channel, then one axis per number of the kernel) and the layout says so."""
    call.require(
        1 <= len(kernel) <= 3 and min(kernel) >= 1, f"kernel={tuple(kernel)}: expected 1 to 3 positive numbers"
    )
    call.require_rank(len(kernel) + 2, len(kernel) + 2)
    layout = call.values["layout"]
    wanted = SPATIAL[len(kernel)]
    call.require(layout in (None, wanted), f"layout={layout} for a kernel of {len(kernel)} numbers; expected {wanted}")


CONVOLUTION: dict[str, Attribute] = {
    "kernel": integers(None),
    "stride": integers(),
    "dilate": integers(),
    "pad": integers(),
    "num_filter": positive(),
    "num_group": positive(1),
    "layout": LAYOUTS,
    **ignored("workspace", "cudnn_tune", "cudnn_off"),
}


@operator("Convolution", "Convolution_v1", attributes={**CONVOLUTION, "no_bias": flag(False)}, slots=with_bias)
def convolution(call: Call) -> ir.Value:
    """Conv, with the same meaning of every attribute."""
    kernel, channels = _image(call)
    groups, filters = call.integer("num_group"), call.integer("num_filter")
    call.require(filters % groups == 0, f"num_group={groups} does not divide num_filter={filters}")
    pads = window_attribute(call, "pad", 0, 0)
    weight = call.parameter(1, (filters, channels // groups, *kernel))
    bias = [call.parameter(2, (filters,))] if len(call.inputs) == 3 else []
    attributes: Attributes = {
        "kernel_shape": kernel,
        "strides": window_attribute(call, "stride", 1, 1),
        "dilations": window_attribute(call, "dilate", 1, 1),
        "pads": pads + pads,
        "group": groups,
    }
    return call.emit("Conv", [call.data, weight, *bias], attributes)


def _image(call: Call) -> tuple[list[int], int]:
    kernel = list(call.integers("kernel"))
    require_image(call, kernel)
    channels, groups = call.shape()[1], call.integer("num_group")
    call.require(channels % groups == 0, f"num_group={groups} does not divide {channels} input channels")
    return kernel, channels


@operator(
    "Deconvolution",
    attributes={**CONVOLUTION, "adj": integers(), "target_shape": integers(), "no_bias": flag(True)},
    slots=with_bias,
)
def deconvolution(call: Call) -> ir.Value:
    """ConvTranspose. A target_shape replaces pad and adj, as MXNet computes them."""
    kernel, channels = _image(call)
    groups, filters = call.integer("num_group"), call.integer("num_filter")
    call.require(filters % groups == 0, f"num_group={groups} does not divide num_filter={filters}")
    weight = call.parameter(1, (channels, filters // groups, *kernel))
    bias = [call.parameter(2, (filters,))] if len(call.inputs) == 3 else []
    strides, dilations = window_attribute(call, "stride", 1, 1), window_attribute(call, "dilate", 1, 1)
    pads, extra = window_attribute(call, "pad", 0, 0), window_attribute(call, "adj", 0, 0)
    if any(call.integers("target_shape")):
        target = window_attribute(call, "target_shape", 0, 1)
        full = [
            stride * (size - 1) + dilation * (window - 1) + 1
            for stride, size, dilation, window in zip(strides, call.shape()[2:], dilations, kernel, strict=True)
        ]
        surplus = [whole - wanted for whole, wanted in zip(full, target, strict=True)]
        call.require(min(surplus) >= 0, f"target_shape={tuple(target)} is larger than the whole result {tuple(full)}")
        pads, extra = [(total + 1) // 2 for total in surplus], [total % 2 for total in surplus]
    attributes: Attributes = {
        "kernel_shape": kernel,
        "strides": strides,
        "dilations": dilations,
        "pads": pads + pads,
        "output_padding": extra,
        "group": groups,
    }
    return call.emit("ConvTranspose", [call.data, weight, *bias], attributes)


@operator(
    "FullyConnected",
    attributes={"num_hidden": positive(), "no_bias": flag(False), "flatten": flag(True)},
    slots=with_bias,
)
def fully_connected(call: Call) -> ir.Value:
    """Gemm on rows: all but the first axis flattened, or (flatten=False) every last axis a row."""
    shape, hidden = call.shape(), call.integer("num_hidden")
    flattened = call.flag("flatten")
    call.require_rank(1)
    rows = call.data
    if flattened and len(shape) != 2:
        rows = call.emit("Flatten", [rows], {"axis": 1})
    elif len(shape) != 2:
        rows = call.reshape(rows, [math.prod(shape[:-1]), shape[-1]])
    width = call.shape(rows)[1]
    weight = call.parameter(1, (hidden, width))
    bias = [call.parameter(2, (hidden,))] if len(call.inputs) == 3 else []
    attributes = {"alpha": 1.0, "beta": 1.0, "transA": 0, "transB": 1}
    product = call.emit("Gemm", [rows, weight, *bias], attributes)
    return product if flattened or len(shape) == 2 else call.reshape(product, [*shape[:-1], hidden])


BATCH_NORM: dict[str, Attribute] = {
    "eps": real(1e-3),
    "fix_gamma": flag(True),
    "output_mean_var": flag(False, only=(False,)),
    # At inference the stored statistics are used either way.
    **ignored("momentum", "use_global_stats", "cudnn_off", "min_calib_range", "max_calib_range"),
}
BATCH_NORM_SLOTS = ("data", "gamma", "beta", "moving_mean", "moving_var")


@operator("BatchNorm_v1", attributes=BATCH_NORM, slots=BATCH_NORM_SLOTS)
def batch_norm_v1(call: Call) -> ir.Value:
    """The older one, on axis 1."""
    return _batch_norm(call, 1)


@operator("BatchNorm", attributes={**BATCH_NORM, "axis": integer(1)}, slots=BATCH_NORM_SLOTS)
def batch_norm(call: Call) -> ir.Value:
    """BatchNormalization on any axis."""
    return _batch_norm(call, call.integer("axis"))


def _batch_norm(call: Call, axis: int) -> ir.Value:
    """gamma counts as 1 with fix_gamma (the default), whatever is stored. Another axis is moved to 1 and back."""
    call.require_rank(2)
    rank = len(call.shape())
    axis = call.axis(axis)
    size = call.shape()[axis]
    gamma, beta, mean, variance = (call.parameter(index, (size,)) for index in range(1, 5))
    if call.flag("fix_gamma"):
        call.require(call.writer.is_parameter(gamma), "fix_gamma=True with a computed gamma")
        gamma = call.writer.ones_like(gamma)
    there = [*range(rank)]
    there[1], there[axis] = there[axis], there[1]
    data = call.data if axis == 1 else call.emit("Transpose", [call.data], {"perm": there})
    epsilon = {"epsilon": call.real("eps")}
    result = call.emit("BatchNormalization", [data, gamma, beta, mean, variance], epsilon)
    return result if axis == 1 else call.emit("Transpose", [result], {"perm": there})


ACTIVATIONS = {"relu": "Relu", "sigmoid": "Sigmoid", "tanh": "Tanh", "softrelu": "Softplus", "softsign": "Softsign"}


@operator("Activation", attributes={"act_type": word(*ACTIVATIONS, required=True)})
def activation(call: Call) -> ir.Value:
    """A function of each element."""
    return call.emit(ACTIVATIONS[call.word("act_type")], [call.data])


def leaky_slots(values: Values) -> tuple[str, ...]:
    """gamma is the slope of prelu."""
    return ("data", "gamma") if values["act_type"] == "prelu" else ("data",)


@operator(
    "LeakyReLU",
    attributes={
        "act_type": word("leaky", "elu", "prelu", "selu", "gelu", "rrelu", default="leaky"),
        "slope": real(0.25),
        "lower_bound": real(0.125),
        "upper_bound": real(0.334),
    },
    slots=leaky_slots,
)
def leaky_relu(call: Call) -> ir.Value:
    """leaky and rrelu (at inference, the mean slope): LeakyRelu. The slope is also the alpha of elu."""
    match call.word("act_type"):
        case "leaky":
            return call.emit("LeakyRelu", [call.data], {"alpha": call.real("slope")})
        case "rrelu":
            slope = (call.real("lower_bound") + call.real("upper_bound")) / 2
            return call.emit("LeakyRelu", [call.data], {"alpha": slope})
        case "elu":
            return call.emit("Elu", [call.data], {"alpha": call.real("slope")})
        case "selu":
            return call.emit("Selu", [call.data])
        case "gelu":
            return call.emit("Gelu", [call.data], {"approximate": "none"})
    return _prelu(call)


def _prelu(call: Call) -> ir.Value:
    """One slope for all, or one per channel (axis 1)."""
    call.require_rank(2)
    shape = call.shape()
    slope = call.parameter(1, (shape[1],), (1,))
    if call.shape(slope) != (1,) and len(shape) > 2:
        slope = call.reshape(slope, [shape[1], *[1] * (len(shape) - 2)])
    return call.emit("PRelu", [call.data, slope])


@operator(
    "Dropout",
    attributes={"mode": word("training", default="training"), **ignored("p", "axes", "cudnn_off")},
)
def dropout(call: Call) -> ir.Value:
    """Nothing at inference, in the mode that is supported."""
    return call.emit("Identity", [call.data])
