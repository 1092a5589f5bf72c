"""Convolution and its transpose, with one to three spatial axes, in every layout."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import onnx_ir as ir

from mrt.frontend.mxnet.graph_builder import Attributes
from mrt.frontend.mxnet.operator_call import OperatorCall
from mrt.frontend.mxnet.operators.nn import with_bias
from mrt.frontend.mxnet.operators.registry import (
    Attribute,
    boolean,
    choice,
    ignored,
    integers,
    operator,
    positive,
)

# The first three have channels first.
LAYOUTS = ("NCW", "NCHW", "NCDHW", "NWC", "NHWC", "NDHWC")


def window_attribute(
    call: OperatorCall, name: str, default: int, least: int
) -> list[int]:
    """Return one number for each spatial axis of the kernel; () is the default for each."""
    rank = len(call.ints_attribute("kernel"))
    numbers = call.ints_attribute(name) or (default,) * rank
    call.require(
        len(numbers) == rank,
        f"{name}={numbers} does not fit kernel={call.ints_attribute('kernel')}",
    )
    call.require(
        min(numbers) >= least,
        f"{name}={numbers}: expected at least {least} each",
    )
    return list(numbers)


def require_image(call: OperatorCall, kernel: Sequence[int]) -> None:
    """Refuse an input without batch, channels and one axis for each number of the kernel.

    The layout, if one is given, must have as many spatial axes.
    """
    call.require(
        1 <= len(kernel) <= 3 and min(kernel) >= 1,
        f"kernel={tuple(kernel)}: expected 1 to 3 positive numbers",
    )
    call.require_rank(len(kernel) + 2, len(kernel) + 2)
    require_layout(call, len(kernel))


def require_layout(call: OperatorCall, spatial: int) -> None:
    """Refuse a layout that does not have so many spatial axes."""
    layout = call.values["layout"]
    layouts = (LAYOUTS[spatial - 1], LAYOUTS[spatial + 2])
    call.require(
        layout in (None, *layouts),
        f"layout={layout} for {spatial} spatial axes; expected {' or '.join(layouts)}",
    )


def channels_first(
    call: OperatorCall, value: ir.Value, *, spatial: int
) -> ir.Value:
    """Return an input or a weight with its last axis moved to 1 if the layout has channels last."""
    if call.values["layout"] not in LAYOUTS[3:]:
        return value
    return call.add(
        "Transpose", value, perm=[0, spatial + 1, *range(1, spatial + 1)]
    )


def channels_back(
    call: OperatorCall, value: ir.Value, *, spatial: int
) -> ir.Value:
    """Invert `channels_first`."""
    if call.values["layout"] not in LAYOUTS[3:]:
        return value
    return call.add("Transpose", value, perm=[0, *range(2, spatial + 2), 1])


CONVOLUTION: dict[str, Attribute] = {
    "kernel": integers(None),
    "stride": integers(),
    "dilate": integers(),
    "pad": integers(),
    "num_filter": positive(),
    "num_group": positive(1),
    "layout": choice(*LAYOUTS),
    **ignored("workspace", "cudnn_tune", "cudnn_off"),
}


@dataclass(frozen=True)
class _Operands:
    kernel: list[int]
    data: ir.Value
    weight: ir.Value
    bias: list[ir.Value]


def _operands(call: OperatorCall, *, transposed: bool) -> _Operands:
    """Return data, weight and bias with channels first.

    The weight is [filters, channels / groups, kernel]; if transposed, it is [channels,
    filters / groups, kernel].
    """
    kernel = list(call.ints_attribute("kernel"))
    require_image(call, kernel)
    data = channels_first(call, call.data, spatial=len(kernel))
    channels = call.shape(data)[1]
    groups = call.int_attribute("num_group")
    filters = call.int_attribute("num_filter")
    call.require(
        channels % groups == 0,
        f"num_group={groups} does not divide {channels} input channels",
    )
    call.require(
        filters % groups == 0,
        f"num_group={groups} does not divide num_filter={filters}",
    )
    outer, inner = (
        (channels, filters // groups)
        if transposed
        else (filters, channels // groups)
    )
    last = call.values["layout"] in LAYOUTS[3:]
    stored = call.parameter(
        1, (outer, *kernel, inner) if last else (outer, inner, *kernel)
    )
    weight = channels_first(call, stored, spatial=len(kernel))
    bias = [call.parameter(2, (filters,))] if len(call.inputs) == 3 else []
    return _Operands(kernel, data, weight, bias)


@operator(
    "Convolution",
    "Convolution_v1",
    attributes={**CONVOLUTION, "no_bias": boolean(False)},
    slots=with_bias,
)
def convolution(call: OperatorCall) -> ir.Value:
    """Write a Conv, whose attributes all have the same meaning."""
    operands = _operands(call, transposed=False)
    pads = window_attribute(call, "pad", 0, 0)
    attributes: Attributes = {
        "kernel_shape": operands.kernel,
        "strides": window_attribute(call, "stride", 1, 1),
        "dilations": window_attribute(call, "dilate", 1, 1),
        "pads": pads + pads,
        "group": call.int_attribute("num_group"),
    }
    result = call.add(
        "Conv", operands.data, operands.weight, *operands.bias, **attributes
    )
    return channels_back(call, result, spatial=len(operands.kernel))


@operator(
    "Deconvolution",
    attributes={
        **CONVOLUTION,
        "adj": integers(),
        "target_shape": integers(),
        "no_bias": boolean(True),
    },
    slots=with_bias,
)
def deconvolution(call: OperatorCall) -> ir.Value:
    """Write a ConvTranspose; a target_shape replaces pad and adj by what MXNet computes from it."""
    operands = _operands(call, transposed=True)
    strides = window_attribute(call, "stride", 1, 1)
    dilations = window_attribute(call, "dilate", 1, 1)
    pads = window_attribute(call, "pad", 0, 0)
    extra = window_attribute(call, "adj", 0, 0)
    if any(call.ints_attribute("target_shape")):
        surplus = _surplus(call, operands, strides, dilations)
        pads = [(total + 1) // 2 for total in surplus]
        extra = [total % 2 for total in surplus]
    below = all(
        more < stride for more, stride in zip(extra, strides, strict=True)
    )
    call.require(
        below, f"adj={tuple(extra)}: expected less than stride={tuple(strides)}"
    )
    attributes: Attributes = {
        "kernel_shape": operands.kernel,
        "strides": strides,
        "dilations": dilations,
        "pads": pads + pads,
        "output_padding": extra,
        "group": call.int_attribute("num_group"),
    }
    result = call.add(
        "ConvTranspose",
        operands.data,
        operands.weight,
        *operands.bias,
        **attributes,
    )
    return channels_back(call, result, spatial=len(operands.kernel))


def _surplus(
    call: OperatorCall,
    operands: _Operands,
    strides: list[int],
    dilations: list[int],
) -> list[int]:
    """Return by how much the full result is longer than target_shape, along each axis."""
    target = window_attribute(call, "target_shape", 0, 1)
    full = [
        stride * (size - 1) + dilation * (window - 1) + 1
        for stride, size, dilation, window in zip(
            strides,
            call.shape(operands.data)[2:],
            dilations,
            operands.kernel,
            strict=True,
        )
    ]
    surplus = [
        size - target_size
        for size, target_size in zip(full, target, strict=True)
    ]
    call.require(
        min(surplus) >= 0,
        f"target_shape={tuple(target)} is larger than the full result {tuple(full)}",
    )
    return surplus
