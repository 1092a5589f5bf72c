"""Normalisation: by stored statistics (BatchNorm) or by those of the input itself (instance, group, layer, L2, LRN)."""

from __future__ import annotations

import math

import numpy as np
import onnx_ir as ir

from mrt.frontend.mxnet.operator_call import OperatorCall
from mrt.frontend.mxnet.operators.registry import (
    Attribute,
    boolean,
    choice,
    ignored,
    integer,
    operator,
    positive,
    real,
)

BATCH_NORM: dict[str, Attribute] = {
    "eps": real(1e-3),
    "fix_gamma": boolean(True),
    "output_mean_var": boolean(False, only=(False,)),
    # At inference the stored statistics are used either way.
    **ignored(
        "momentum",
        "use_global_stats",
        "cudnn_off",
        "min_calib_range",
        "max_calib_range",
    ),
}
BATCH_NORM_SLOTS = ("data", "gamma", "beta", "moving_mean", "moving_var")


OF_ALL = {
    name: BATCH_NORM[name]
    for name in ("eps", "fix_gamma", "output_mean_var", "momentum", "use_global_stats")
}


@operator("BatchNorm_v1", attributes=OF_ALL, slots=BATCH_NORM_SLOTS)
def batch_norm_v1(call: OperatorCall) -> ir.Value:
    """The older one, on axis 1."""
    return _batch_norm(call, 1)


@operator(
    "_contrib_SyncBatchNorm",
    attributes={**OF_ALL, **ignored("ndev", "key")},
    slots=BATCH_NORM_SLOTS,
)
def sync_batch_norm(call: OperatorCall) -> ir.Value:
    """Synchronised in training only; on axis 1."""
    return _batch_norm(call, 1)


@operator(
    "BatchNorm",
    "CuDNNBatchNorm",
    attributes={**BATCH_NORM, "axis": integer(1)},
    slots=BATCH_NORM_SLOTS,
)
def batch_norm(call: OperatorCall) -> ir.Value:
    """BatchNormalization on any axis."""
    return _batch_norm(call, call.int_attribute("axis"))


@operator(
    "_contrib_BatchNormWithReLU",
    attributes={**BATCH_NORM, "axis": integer(1)},
    slots=BATCH_NORM_SLOTS,
)
def batch_norm_with_relu(call: OperatorCall) -> ir.Value:
    """BatchNormalization, then Relu."""
    return call.add("Relu", _batch_norm(call, call.int_attribute("axis")))


def _batch_norm(call: OperatorCall, axis: int) -> ir.Value:
    """gamma counts as 1 with fix_gamma (the default), whatever is stored. Another axis is moved to 1 and back."""
    axis = call.axis(axis)
    size = call.shape()[axis]
    gamma, beta, mean, variance = (
        call.parameter(index, (size,)) for index in range(1, 5)
    )
    if call.bool_attribute("fix_gamma"):
        call.require(
            call.builder.is_parameter(gamma), "fix_gamma=True with a computed gamma"
        )
        gamma = call.builder.ones_like(gamma)
    epsilon = {"epsilon": call.float_attribute("eps")}
    if len(call.shape()) == 1:
        row = call.reshape(call.data, [1, size])
        return call.reshape(
            call.add("BatchNormalization", row, gamma, beta, mean, variance, **epsilon),
            [size],
        )
    there = _swapped(len(call.shape()), 1, axis)
    data = call.data if axis == 1 else call.add("Transpose", call.data, perm=there)
    result = call.add(
        "BatchNormalization", data, gamma, beta, mean, variance, **epsilon
    )
    return result if axis == 1 else call.add("Transpose", result, perm=there)


def _swapped(rank: int, first: int, second: int) -> list[int]:
    """The order of axes in which two have changed places; it is its own inverse."""
    order = [*range(rank)]
    order[first], order[second] = order[second], order[first]
    return order


SCALED = ("data", "gamma", "beta")


@operator("InstanceNorm", attributes={"eps": real(1e-3)}, slots=SCALED)
def instance_norm(call: OperatorCall) -> ir.Value:
    """InstanceNormalization: over all but batch and channel."""
    call.require_rank(3)
    channels = (call.shape()[1],)
    operands = [call.data, call.parameter(1, channels), call.parameter(2, channels)]
    return call.add(
        "InstanceNormalization", *operands, epsilon=call.float_attribute("eps")
    )


@operator(
    "GroupNorm",
    attributes={
        "num_groups": positive(1),
        "eps": real(1e-5),
        "output_mean_var": boolean(False, only=(False,)),
    },
    slots=SCALED,
)
def group_norm(call: OperatorCall) -> ir.Value:
    """Groups of channels normalised as one, each with ONE gamma and beta (MXNet 1.9 has none per channel)."""
    call.require_rank(3)
    shape, groups = call.shape(), call.int_attribute("num_groups")
    call.require(
        shape[1] % groups == 0,
        f"num_groups={groups} does not divide {shape[1]} channels",
    )
    gamma, beta = call.parameter(1, (groups,)), call.parameter(2, (groups,))
    grouped = call.reshape(
        call.data, [shape[0], groups, math.prod(shape[1:]) // groups]
    )
    result = call.add(
        "InstanceNormalization",
        grouped,
        gamma,
        beta,
        epsilon=call.float_attribute("eps"),
    )
    return call.reshape(result, shape)


@operator(
    "LayerNorm",
    attributes={
        "axis": integer(-1),
        "eps": real(1e-5),
        "output_mean_var": boolean(False, only=(False,)),
    },
    slots=SCALED,
)
def layer_norm(call: OperatorCall) -> ir.Value:
    """LayerNormalization of one axis, which is moved to the end and back."""
    rank, axis = len(call.shape()), call.axis(call.int_attribute("axis"))
    size = (call.shape()[axis],)
    gamma, beta = call.parameter(1, size), call.parameter(2, size)
    there = _swapped(rank, axis, rank - 1)
    data = (
        call.data if axis == rank - 1 else call.add("Transpose", call.data, perm=there)
    )
    attributes = {"axis": -1, "epsilon": call.float_attribute("eps")}
    result = call.add("LayerNormalization", data, gamma, beta, **attributes)
    return result if axis == rank - 1 else call.add("Transpose", result, perm=there)


@operator(
    "LRN",
    attributes={
        "nsize": positive(),
        "alpha": real(1e-4),
        "beta": real(0.75),
        "knorm": real(2.0),
    },
)
def lrn(call: OperatorCall) -> ir.Value:
    """LRN over nsize neighbouring channels; knorm is ONNX's bias."""
    call.require_rank(4, 4)
    size = call.int_attribute("nsize")
    call.require(size % 2 == 1, f"nsize={size}: expected an odd number")
    names = {
        "alpha": call.float_attribute("alpha"),
        "beta": call.float_attribute("beta"),
        "bias": call.float_attribute("knorm"),
    }
    return call.add("LRN", call.data, size=size, **names)


@operator(
    "L2Normalization",
    attributes={
        "eps": real(1e-10),
        "mode": choice("channel", "instance", "spatial", default="instance"),
    },
)
def l2_normalization(call: OperatorCall) -> ir.Value:
    """x / sqrt(sum x^2 + eps), summed over all but the batch, over axis 1, or over all axes behind it."""
    mode = call.string_attribute("mode")
    call.require_rank(2 if mode == "instance" else 3)
    axes = {
        "instance": range(1, len(call.shape())),
        "channel": (1,),
        "spatial": range(2, len(call.shape())),
    }[mode]
    squares = call.add("ReduceSumSquare", call.data, call.constant([*axes]), keepdims=1)
    epsilon = call.array(np.array(call.float_attribute("eps"), np.float32))
    return call.add(
        "Div", call.data, call.add("Sqrt", call.add("Add", squares, epsilon))
    )
