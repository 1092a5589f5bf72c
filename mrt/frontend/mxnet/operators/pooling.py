"""Pooling with MXNet's own sizes and divisors, written with explicit pads, never ONNX's ceil_mode.

Where n is the input, p the pad and k the kernel, the number of windows is 1 + (n + 2p -
k) / stride, rounded down ('valid') or up ('full'). If it is rounded up, the last window
can stick out of the padded input, by the overhang.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import onnx_ir as ir

from mrt.frontend.mxnet.graph_builder import AttributeValue
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
        "count_include_pad": Attribute(
            boolean(True).parse, True, none_allowed=True
        ),
        "layout": choice(*LAYOUTS),
        **ignored("cudnn_off"),
    },
)
def pooling(call: OperatorCall) -> ir.Value:
    """Pool over windows, or over all of the input.

    Averages divide by the size of the window inside the padded input; without
    count_include_pad, by its size inside the input.
    """
    is_global = call.bool_attribute("global_pool")
    spatial = call.rank() - 2
    if is_global:
        call.require_rank(3, 5)
        require_layout(call, spatial)
    else:
        require_image(call, call.ints_attribute("kernel"))
    data = channels_first(call, call.data, spatial=spatial)
    kind = call.string_attribute("pool_type")
    result = _pool(call, kind, data, is_global=is_global)
    return channels_back(call, result, spatial=spatial)


def _norms(call: OperatorCall, data: ir.Value, *, is_global: bool) -> ir.Value:
    """Write (sum x^p)^(1/p) for p of 2, or for p of 1, where it is the sum with its sign."""
    p = call.optional_int_attribute("p_value")
    call.require(p in (1, 2), f"p_value={p}: supported: 1, 2")
    if p == 1:
        return _pool(call, "sum", data, is_global=is_global)
    squares = call.add("Mul", data, data)
    total = _pool(call, "sum", squares, is_global=is_global)
    return call.add("Sqrt", total)


def _pool(
    call: OperatorCall, kind: str, data: ir.Value, *, is_global: bool
) -> ir.Value:
    if kind == "lp":
        return _norms(call, data, is_global=is_global)
    if is_global:
        return _pool_all(call, kind, data)
    return _pool_windows(call, kind, _windows(call, data), data)


@operator(
    "Pooling_v1",
    attributes={
        **POOLING,
        "pool_type": choice("max", "avg", "sum", default="max"),
    },
)
def pooling_v1(call: OperatorCall) -> ir.Value:
    """Write the older Pooling, whose averages divide by the size of the entire kernel.

    It pads with zeros for a maximum too. A Pad with zeros in front of a MaxPool is a form
    that onnxruntime gets wrong: it takes the zeros for MaxPool's own padding.
    """
    kind = call.string_attribute("pool_type")
    if call.bool_attribute("global_pool"):
        call.require_rank(4, 4)
        return _pool_all(call, kind, call.data)
    kernel = call.ints_attribute("kernel")
    call.require(len(kernel) == 2, f"kernel={kernel}: expected 2 numbers")
    call.require_rank(4, 4)
    windows = _windows(call, call.data)
    if kind != "max":
        averages = _averages(call, kind, windows, call.data, count_padding=True)
        return _append_zeros(call, windows, averages)
    call.require(
        not any(windows.missing), "a window lies wholly in the padding"
    )
    producer = call.data.producer()
    is_after_relu = producer is not None and producer.op_type == "Relu"
    call.require(
        is_after_relu or not any(windows.pads),
        f"pad={windows.pads}: a maximum over zeros outside is supported "
        "after a relu only",
    )
    return _max_pool(call, windows, call.data)


def _max_pool(
    call: OperatorCall, windows: _Windows, data: ir.Value
) -> ir.Value:
    attributes = _attributes(windows, windows.pads, windows.end_pads)
    return call.add("MaxPool", data, **attributes)


def _pool_all(call: OperatorCall, kind: str, data: ir.Value) -> ir.Value:
    """Write one number for each channel; kernel, stride and pad have no effect."""
    if kind == "sum":
        axes = call.constant([*range(2, call.rank(data))])
        return call.add("ReduceSum", data, axes, keepdims=1)
    return call.add(
        "GlobalMaxPool" if kind == "max" else "GlobalAveragePool", data
    )


@dataclass(frozen=True)
class _Windows:
    """The windows of a pooling, with one number for each spatial axis.

    The last `missing` windows begin after the input and contain no element of it. The
    last of the others needs `end_pads` elements after the input, and sticks out of the
    padded input by `overhang`.
    """

    kernel: list[int]
    strides: list[int]
    pads: list[int]
    end_pads: list[int]
    overhang: list[int]
    missing: list[int]


def _windows(call: OperatorCall, data: ir.Value) -> _Windows:
    kernel = list(call.ints_attribute("kernel"))
    strides = window_attribute(call, "stride", 1, 1)
    pads = window_attribute(call, "pad", 0, 0)
    windows = _Windows(kernel, strides, pads, [], [], [])
    sizes = call.shape(data)[2:]
    for size, window, stride, pad in zip(
        sizes, kernel, strides, pads, strict=True
    ):
        padded = size + 2 * pad
        call.require(
            window <= padded, f"kernel={tuple(kernel)} exceeds the padded input"
        )
        call.require(pad < window, "a window lies wholly in the padding")
        count = 1 + _last_window(call, padded - window, stride)
        kept = min(count, math.ceil((size + pad) / stride))
        needed = (kept - 1) * stride - pad + window - size
        least = pad if kept == count else 0
        windows.missing.append(count - kept)
        windows.overhang.append(max(0, needed - pad))
        windows.end_pads.append(max(needed, least))
    return windows


def _last_window(call: OperatorCall, room: int, stride: int) -> int:
    """Return the number of strides from the first window to the last."""
    if call.string_attribute("pooling_convention") == "full":
        return math.ceil(room / stride)
    return room // stride


def _attributes(
    windows: _Windows, pads: list[int], end_pads: list[int]
) -> dict[str, AttributeValue]:
    return {
        "kernel_shape": windows.kernel,
        "strides": windows.strides,
        "pads": pads + end_pads,
        "ceil_mode": 0,
    }


def _pool_windows(
    call: OperatorCall, kind: str, windows: _Windows, data: ir.Value
) -> ir.Value:
    """Write one number for each window; the sum or average of an empty window is 0.

    A maximum over an empty window is refused: in MXNet it is the least float.
    """
    if kind == "max":
        call.require(
            not any(windows.missing), "a window lies wholly in the padding"
        )
        return _max_pool(call, windows, data)
    if kind == "sum" or call.values["count_include_pad"] is False:
        pooled = _averages(call, kind, windows, data, count_padding=False)
    else:
        pooled = _average_with_padding(call, windows, data)
    return _append_zeros(call, windows, pooled)


def _append_zeros(
    call: OperatorCall, windows: _Windows, pooled: ir.Value
) -> ir.Value:
    """Append 0 for each window that contains no element."""
    if not any(windows.missing):
        return pooled
    pads = call.constant([0] * (len(windows.kernel) + 4) + windows.missing)
    return call.add("Pad", pooled, pads, call.constant(0.0), mode="constant")


def _averages(
    call: OperatorCall,
    kind: str,
    windows: _Windows,
    data: ir.Value,
    *,
    count_padding: bool,
) -> ir.Value:
    """Write averages over the entire kernel or over the elements in it; make sums from these."""
    attributes = _attributes(windows, windows.pads, windows.end_pads)
    attributes["count_include_pad"] = int(count_padding or kind == "sum")
    average = call.add("AveragePool", data, **attributes)
    if kind == "avg":
        return average
    size = float(math.prod(windows.kernel))
    return call.add("Mul", average, call.constant(size))


def _average_with_padding(
    call: OperatorCall, windows: _Windows, data: ir.Value
) -> ir.Value:
    """Write averages in which the padding counts but the overhang does not.

    Where both exist, the padding must become data.
    """
    if not any(windows.overhang):
        return _averages(call, "avg", windows, data, count_padding=True)
    if not any(windows.pads):
        return _averages(call, "avg", windows, data, count_padding=False)
    no_pads = [0] * len(windows.kernel)
    attributes = _attributes(windows, no_pads, windows.overhang)
    attributes["count_include_pad"] = 0
    padded = _padded(call, windows, data)
    return call.add("AveragePool", padded, **attributes)


def _padded(call: OperatorCall, windows: _Windows, data: ir.Value) -> ir.Value:
    """Surround the data with as many zeros as `pad` requires."""
    pads = [0, 0, *windows.pads]
    return call.add(
        "Pad",
        data,
        call.constant(pads + pads),
        call.constant(0.0),
        mode="constant",
    )
