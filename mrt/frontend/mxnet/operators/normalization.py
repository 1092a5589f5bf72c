"""Normalization by stored statistics (BatchNorm) or by the input's own (all others)."""

from __future__ import annotations

import math

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


SHARED_ATTRIBUTES = {
    name: BATCH_NORM[name]
    for name in (
        "eps",
        "fix_gamma",
        "output_mean_var",
        "momentum",
        "use_global_stats",
    )
}


@operator("BatchNorm_v1", attributes=SHARED_ATTRIBUTES, slots=BATCH_NORM_SLOTS)
def batch_norm_v1(call: OperatorCall) -> ir.Value:
    """Write the older BatchNorm, which always normalizes axis 1."""
    return _batch_norm(call, 1)


@operator(
    "_contrib_SyncBatchNorm",
    attributes={**SHARED_ATTRIBUTES, **ignored("ndev", "key")},
    slots=BATCH_NORM_SLOTS,
)
def sync_batch_norm(call: OperatorCall) -> ir.Value:
    """Write a BatchNorm of axis 1, which is synchronised in training only."""
    return _batch_norm(call, 1)


@operator(
    "BatchNorm",
    "CuDNNBatchNorm",
    attributes={**BATCH_NORM, "axis": integer(1)},
    slots=BATCH_NORM_SLOTS,
)
def batch_norm(call: OperatorCall) -> ir.Value:
    """Write a BatchNormalization of any axis."""
    return _batch_norm(call, call.int_attribute("axis"))


@operator(
    "_contrib_BatchNormWithReLU",
    attributes={**BATCH_NORM, "axis": integer(1)},
    slots=BATCH_NORM_SLOTS,
)
def batch_norm_with_relu(call: OperatorCall) -> ir.Value:
    """Write a BatchNormalization, then a Relu."""
    return call.add("Relu", _batch_norm(call, call.int_attribute("axis")))


def _batch_norm(call: OperatorCall, axis: int) -> ir.Value:
    """Write a BatchNormalization of an axis, which is exchanged with axis 1 and back.

    With fix_gamma (the default) gamma counts as 1, whatever numbers are stored.
    """
    axis = call.axis(axis)
    size = call.shape()[axis]
    gamma, *others = [call.parameter(index, (size,)) for index in range(1, 5)]
    if call.bool_attribute("fix_gamma"):
        is_stored = call.builder.is_parameter(gamma)
        call.require(is_stored, "fix_gamma=True with a computed gamma")
        gamma = call.builder.ones_like(gamma)
    data = call.data
    if call.rank() == 1:
        data = call.reshape(data, [1, size])
    elif axis != 1:
        order = _swapped(call.rank(), 1, axis)
        data = call.transpose(data, order)
    epsilon = call.float_attribute("eps")
    result = call.add(
        "BatchNormalization", data, gamma, *others, epsilon=epsilon
    )
    if call.rank() == 1:
        return call.reshape(result, [size])
    return result if axis == 1 else call.transpose(result, order)


def _swapped(rank: int, first: int, second: int) -> list[int]:
    """Return the order of axes with two of them exchanged; it is its own inverse."""
    order = [*range(rank)]
    order[first], order[second] = order[second], order[first]
    return order


SCALED = ("data", "gamma", "beta")


@operator("InstanceNorm", attributes={"eps": real(1e-3)}, slots=SCALED)
def instance_norm(call: OperatorCall) -> ir.Value:
    """Write an InstanceNormalization, over all axes but batch and channel."""
    call.require_rank(3)
    channels = (call.shape()[1],)
    operands = [
        call.data,
        call.parameter(1, channels),
        call.parameter(2, channels),
    ]
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
    """Write an InstanceNormalization of groups of channels.

    Each group has ONE gamma and beta; MXNet 1.9 has none per channel.
    """
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
    """Write a LayerNormalization of one axis, which is exchanged with the last and back."""
    last = call.rank() - 1
    axis = call.axis_attribute()
    size = (call.shape()[axis],)
    gamma = call.parameter(1, size)
    beta = call.parameter(2, size)
    order = _swapped(last + 1, axis, last)
    data = call.data if axis == last else call.transpose(call.data, order)
    epsilon = call.float_attribute("eps")
    result = call.add(
        "LayerNormalization", data, gamma, beta, axis=-1, epsilon=epsilon
    )
    return result if axis == last else call.transpose(result, order)


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
    """Write an LRN over nsize neighbouring channels; knorm is ONNX's bias."""
    call.require_rank(4, 4)
    size = call.int_attribute("nsize")
    call.require(size % 2 == 1, f"nsize={size}: expected an odd number")
    return call.add(
        "LRN",
        call.data,
        size=size,
        alpha=call.float_attribute("alpha"),
        beta=call.float_attribute("beta"),
        bias=call.float_attribute("knorm"),
    )


@operator(
    "L2Normalization",
    attributes={
        "eps": real(1e-10),
        "mode": choice("channel", "instance", "spatial", default="instance"),
    },
)
def l2_normalization(call: OperatorCall) -> ir.Value:
    """Write x / sqrt(sum x^2 + eps).

    The sum runs over all axes but the batch (instance), over axis 1 (channel), or over
    all axes after it (spatial).
    """
    mode = call.string_attribute("mode")
    call.require_rank(2 if mode == "instance" else 3)
    first = 2 if mode == "spatial" else 1
    end = 2 if mode == "channel" else call.rank()
    axes = call.constant([*range(first, end)])
    squares = call.add("ReduceSumSquare", call.data, axes, keepdims=1)
    epsilon = call.constant(call.float_attribute("eps"))
    total = call.add("Add", squares, epsilon)
    root = call.add("Sqrt", total)
    return call.add("Div", call.data, root)
