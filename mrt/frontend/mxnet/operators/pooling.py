"""Pooling with MXNet's own sizes and divisors, written with explicit pads and never with ONNX's ceil_mode.

Where n is the input, p the pad and k the kernel, the number of windows is 1 + (n + 2p - k) / stride, rounded down
('valid') or up ('full'). Rounding up lets the last window stick out over the padded input, by the overhang.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import onnx_ir as ir

from mrt.frontend.mxnet.graph_builder import Attributes
from mrt.frontend.mxnet.operator_call import OperatorCall
from mrt.frontend.mxnet.operators.convolution import (
    LAYOUTS,
    channels_back,
    channels_first,
    require_image,
    require_layout,
    window_attribute,
)
from mrt.frontend.mxnet.operators.registry import (
    Attribute,
    boolean,
    choice,
    ignored,
    integers,
    operator,
    optional_integer,
)

POOLING: dict[str, Attribute] = {
    "kernel": integers(),
    "global_pool": boolean(False),
    "pooling_convention": choice("valid", "full", default="valid"),
    "stride": integers(),
    "pad": integers(),
}


@operator(
    "Pooling",
    attributes={
        **POOLING,
        "pool_type": choice("max", "avg", "sum", "lp", default="max"),
        "p_value": optional_integer(),
        "count_include_pad": Attribute(boolean(True).parse, True, none_allowed=True),
        "layout": choice(*LAYOUTS),
        **ignored("cudnn_off"),
    },
)
def pooling(call: OperatorCall) -> ir.Value:
    """Averages divide by the window inside the padded input, or inside the input without count_include_pad."""
    whole = call.bool_attribute("global_pool")
    spatial = len(call.shape()) - 2
    if whole:
        call.require_rank(3, 5)
        require_layout(call, spatial)
    else:
        require_image(call, call.ints_attribute("kernel"))
    data = channels_first(call, call.data, spatial=spatial)
    kind = call.string_attribute("pool_type")
    if kind == "lp":
        result = _norms(call, data, whole=whole)
    elif whole:
        result = _over_all(call, kind, data)
    else:
        result = _pool(call, kind, _windows(call, data), data)
    return channels_back(call, result, spatial=spatial)


def _norms(call: OperatorCall, data: ir.Value, *, whole: bool) -> ir.Value:
    """(sum x^p)^(1/p), for p of 1, which is the sum with its sign, or 2."""
    p = call.optional_int_attribute("p_value")
    call.require(p in (1, 2), f"p_value={p}: supported: 1, 2")
    powers = data if p == 1 else call.add("Mul", data, data)
    total = (
        _over_all(call, "sum", powers)
        if whole
        else _pool(call, "sum", _windows(call, powers), powers)
    )
    return total if p == 1 else call.add("Sqrt", total)


@operator(
    "Pooling_v1",
    attributes={**POOLING, "pool_type": choice("max", "avg", "sum", default="max")},
)
def pooling_v1(call: OperatorCall) -> ir.Value:
    """The older one: averages always divide by the whole kernel, and to a maximum too the padding is zeros.

    Padding with zeros in front of a MaxPool is a form that onnxruntime gets wrong: it takes them for MaxPool's own pads.
    """
    kind = call.string_attribute("pool_type")
    if call.bool_attribute("global_pool"):
        call.require_rank(4, 4)
        return _over_all(call, kind, call.data)
    kernel = call.ints_attribute("kernel")
    call.require(len(kernel) == 2, f"kernel={kernel}: expected 2 numbers")
    call.require_rank(4, 4)
    windows = _windows(call, call.data)
    if kind != "max":
        return _fill(
            call, windows, _sums(call, kind, windows, call.data, counting=True)
        )
    call.require(not any(windows.missing), "a window lies wholly in the padding")
    producer = call.data.producer()
    harmless = not any(windows.pads) or (
        producer is not None and producer.op_type == "Relu"
    )
    call.require(
        harmless,
        f"pad={windows.pads}: a maximum over zeros outside is supported after a relu only",
    )
    return call.add(
        "MaxPool", call.data, **_attributes(windows, windows.pads, windows.ends)
    )


def _over_all(call: OperatorCall, kind: str, data: ir.Value) -> ir.Value:
    """kernel, stride and pad do not matter."""
    if kind == "sum":
        axes = call.constant([*range(2, len(call.shape(data)))])
        return call.add("ReduceSum", data, axes, keepdims=1)
    return call.add("GlobalMaxPool" if kind == "max" else "GlobalAveragePool", data)


@dataclass(frozen=True)
class _Windows:
    """By axis. `missing` windows begin behind the input and hold nothing of it.

    The last of the others needs `ends` behind the input, and sticks out of the padded input by `overhang`.
    """

    kernel: list[int]
    strides: list[int]
    pads: list[int]
    ends: list[int]
    overhang: list[int]
    missing: list[int]


def _windows(call: OperatorCall, data: ir.Value) -> _Windows:
    kernel, sizes = list(call.ints_attribute("kernel")), call.shape(data)[2:]
    strides, pads = (
        window_attribute(call, "stride", 1, 1),
        window_attribute(call, "pad", 0, 0),
    )
    windows = _Windows(kernel, strides, pads, [], [], [])
    for size, window, stride, pad in zip(sizes, kernel, strides, pads, strict=True):
        padded = size + 2 * pad
        call.require(
            window <= padded, f"kernel={tuple(kernel)} exceeds the padded input"
        )
        call.require(pad < window, "a window lies wholly in the padding")
        full = call.string_attribute("pooling_convention") == "full"
        count = 1 + (
            math.ceil((padded - window) / stride)
            if full
            else (padded - window) // stride
        )
        kept = min(count, -(-(size + pad) // stride))
        reach = (kept - 1) * stride - pad + window - size
        windows.missing.append(count - kept)
        windows.overhang.append(max(0, reach - pad))
        windows.ends.append(max(reach, 0) if kept < count else max(reach, pad))
    return windows


def _attributes(
    windows: _Windows, pads: list[int] | None, ends: list[int]
) -> dict[str, int | list[int]]:
    return {
        "kernel_shape": windows.kernel,
        "strides": windows.strides,
        "pads": (pads or [0] * len(windows.kernel)) + ends,
        "ceil_mode": 0,
    }


def _pool(call: OperatorCall, kind: str, windows: _Windows, data: ir.Value) -> ir.Value:
    """A maximum over nothing is refused: in MXNet it is the least float. A sum or an average of nothing is 0."""
    if kind == "max":
        call.require(not any(windows.missing), "a window lies wholly in the padding")
        return call.add(
            "MaxPool", data, **_attributes(windows, windows.pads, windows.ends)
        )
    if kind == "sum" or call.values["count_include_pad"] is False:
        return _fill(call, windows, _sums(call, kind, windows, data, counting=False))
    return _fill(call, windows, _average_counting_padding(call, windows, data))


def _fill(call: OperatorCall, windows: _Windows, pooled: ir.Value) -> ir.Value:
    """0 for the windows that hold nothing."""
    if not any(windows.missing):
        return pooled
    pads = [0] * (len(windows.kernel) + 4) + windows.missing
    return call.add(
        "Pad", pooled, call.constant(pads), call.constant(0.0), mode="constant"
    )


def _sums(
    call: OperatorCall, kind: str, windows: _Windows, data: ir.Value, *, counting: bool
) -> ir.Value:
    """A sum is as many averages over the whole kernel; an average divides by it, or by the elements it holds."""
    whole = int(counting or kind == "sum")
    attributes: Attributes = {
        **_attributes(windows, windows.pads, windows.ends),
        "count_include_pad": whole,
    }
    average = call.add("AveragePool", data, **attributes)
    if kind == "avg":
        return average
    return call.add("Mul", average, call.constant(float(math.prod(windows.kernel))))


def _average_counting_padding(
    call: OperatorCall, windows: _Windows, data: ir.Value
) -> ir.Value:
    """The padding counts but the overhang does not: where both exist, the padding must become data."""
    if not any(windows.overhang):
        return _sums(call, "avg", windows, data, counting=True)
    if not any(windows.pads):
        return _sums(call, "avg", windows, data, counting=False)
    attributes: Attributes = {
        **_attributes(windows, None, windows.overhang),
        "count_include_pad": 0,
    }
    return call.add("AveragePool", _padded(call, windows, data), **attributes)


def _padded(call: OperatorCall, windows: _Windows, data: ir.Value) -> ir.Value:
    """Zeros around the data as `pad` says."""
    pads = [0, 0, *windows.pads]
    return call.add(
        "Pad", data, call.constant(pads + pads), call.constant(0.0), mode="constant"
    )
