"""Pooling with MXNet's own sizes and divisors, written with explicit pads and never with ONNX's ceil_mode.

Where n is the input, p the pad and k the kernel, the number of windows is 1 + (n + 2p - k) / stride, rounded down
('valid') or up ('full'). Rounding up lets the last window stick out over the padded input, by the overhang.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import onnx_ir as ir

from mrt.frontend.mxnet.call import Call
from mrt.frontend.mxnet.operators.nn import LAYOUTS, require_image, window_attribute
from mrt.frontend.mxnet.operators.registry import Attribute, flag, ignored, integers, operator, word
from mrt.frontend.mxnet.writer import Attributes

POOLING: dict[str, Attribute] = {
    "kernel": integers(),
    "pool_type": word("max", "avg", "sum", default="max"),
    "global_pool": flag(False),
    "pooling_convention": word("valid", "full", default="valid"),
    "stride": integers(),
    "pad": integers(),
}
GLOBAL = {"max": "GlobalMaxPool", "avg": "GlobalAveragePool"}


@operator(
    "Pooling",
    attributes={
        **POOLING,
        "count_include_pad": Attribute(flag(True).parse, True, none_allowed=True),
        "layout": LAYOUTS,
        **ignored("cudnn_off", "p_value"),
    },
)
def pooling(call: Call) -> ir.Value:
    """Averages divide by the window inside the padded input, or inside the input without count_include_pad."""
    if call.flag("global_pool"):
        return _global_pool(call)
    require_image(call, call.integers("kernel"))
    windows = _windows(call)
    if call.values["count_include_pad"] is False:
        return _pool(call, windows)
    return _pool_counting_padding(call, windows)


@operator("Pooling_v1", attributes=POOLING)
def pooling_v1(call: Call) -> ir.Value:
    """The older one: averages always divide by the whole kernel."""
    if call.flag("global_pool"):
        return _global_pool(call)
    kernel = call.integers("kernel")
    call.require(len(kernel) == 2, f"kernel={kernel}: expected 2 numbers")
    call.require_rank(4, 4)
    return _pool(call, _windows(call), divisor_is_kernel=True)


def _global_pool(call: Call) -> ir.Value:
    """kernel, stride and pad do not matter."""
    call.require_rank(3, 5)
    if call.word("pool_type") == "sum":
        axes = call.constant([*range(2, len(call.shape()))])
        return call.emit("ReduceSum", [call.data, axes], {"keepdims": 1})
    return call.emit(GLOBAL[call.word("pool_type")], [call.data])


@dataclass(frozen=True)
class _Windows:
    kernel: list[int]
    strides: list[int]
    pads: list[int]
    overhang: list[int]


def _windows(call: Call) -> _Windows:
    kernel, sizes = list(call.integers("kernel")), call.shape()[2:]
    strides, pads = window_attribute(call, "stride", 1, 1), window_attribute(call, "pad", 0, 0)
    overhang = []
    for size, window, stride, pad in zip(sizes, kernel, strides, pads, strict=True):
        call.require(window <= size + 2 * pad, f"kernel={tuple(kernel)} exceeds the padded input")
        steps = (size + 2 * pad - window) / stride
        count = 1 + (math.ceil(steps) if call.word("pooling_convention") == "full" else math.floor(steps))
        last = (count - 1) * stride - pad
        call.require(pad < window and last < size, "a window lies wholly in the padding")
        overhang.append(max(0, last + window - size - pad))
    return _Windows(kernel, strides, pads, overhang)


def _pool(call: Call, windows: _Windows, *, divisor_is_kernel: bool = False) -> ir.Value:
    """Padding is nothing to a maximum or a sum; an average divides by the elements, or by the kernel."""
    ends = [pad + extra for pad, extra in zip(windows.pads, windows.overhang, strict=True)]
    attributes: Attributes = {
        "kernel_shape": windows.kernel,
        "strides": windows.strides,
        "pads": windows.pads + ends,
        "ceil_mode": 0,
    }
    kind = call.word("pool_type")
    if kind == "max":
        return call.emit("MaxPool", [call.data], attributes)
    whole = int(divisor_is_kernel or kind == "sum")
    average = call.emit("AveragePool", [call.data], {**attributes, "count_include_pad": whole})
    if kind == "avg":
        return average
    return call.emit("Mul", [average, call.constant(float(math.prod(windows.kernel)))])


def _pool_counting_padding(call: Call, windows: _Windows) -> ir.Value:
    """The padding counts but the overhang does not: where both exist, the padding must become data."""
    if not any(windows.overhang):
        return _pool(call, windows, divisor_is_kernel=True)
    if call.word("pool_type") != "avg" or not any(windows.pads):
        return _pool(call, windows)
    pads = [0, 0, *windows.pads]
    padded = call.emit("Pad", [call.data, call.constant(pads + pads), call.constant(0.0)], {"mode": "constant"})
    attributes: Attributes = {
        "kernel_shape": windows.kernel,
        "strides": windows.strides,
        "pads": [0] * len(windows.pads) + windows.overhang,
        "ceil_mode": 0,
        "count_include_pad": 0,
    }
    return call.emit("AveragePool", [padded], attributes)


@operator("_contrib_AdaptiveAvgPooling2D", attributes={"output_size": integers()})
def adaptive_average_pooling(call: Call) -> ir.Value:
    """One result per channel, or equal windows where the sizes divide."""
    call.require_rank(4, 4)
    sizes = call.integers("output_size") or (1,)
    call.require(len(sizes) <= 2 and min(sizes) >= 1, f"output_size={sizes}: expected 1 or 2 positive numbers")
    wanted = sizes if len(sizes) == 2 else sizes * 2
    if wanted == (1, 1):
        return call.emit("GlobalAveragePool", [call.data])
    found = call.shape()[2:]
    divides = all(size % target == 0 for size, target in zip(found, wanted, strict=True))
    call.require(divides, f"output_size={wanted} does not divide {found}")
    kernel = [size // target for size, target in zip(found, wanted, strict=True)]
    return call.emit("AveragePool", [call.data], {"kernel_shape": kernel, "strides": kernel, "pads": [0, 0, 0, 0]})
