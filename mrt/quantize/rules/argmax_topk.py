"""Rules of ArgMax and TopK; indices are integral, and of equal elements the lower index wins."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import onnx_ir as ir

from mrt.graph.canonical_values import shape_of
from mrt.quantize.builder import Handle
from mrt.quantize.context import LoweringContext
from mrt.quantize.rules.registry import rule
from mrt.quantize.tensor import Layout, Tensor


@rule("ArgMax")
def arg_max(net: LoweringContext, node: ir.Node) -> None:
    """Write an argmax, which removes the axis."""
    x = _ordered(net, node.inputs[0])
    axis = node.attributes["axis"].as_int()
    value = net.builder.emit("argmax", x.value, axis=x.layout.index(axis))
    if node.attributes["keepdims"].as_int():
        layout = x.layout
        shape = shape_of(node.outputs[0])
        value = net.reshaped(value, tuple(shape[other] for other in layout))
    else:
        others = [other for other in x.layout if other != axis]
        layout = tuple(other - 1 if other > axis else other for other in others)
    net.define(node.outputs[0], Tensor(value, np.ones(1), 0, layout))


@rule("TopK")
def top_k(net: LoweringContext, node: ir.Node) -> None:
    """Write an argsort of the axis, moved behind all others, and take its first k entries."""
    x, axis = _ordered(net, node.inputs[0]), node.attributes["axis"].as_int()
    x = net.to_layout(x, last(axis, len(x.layout)))
    order = net.builder.emit(
        "argsort", x.value, descending=bool(node.attributes["largest"].as_int())
    )
    size = (*net.shape(x)[:-1], shape_of(node.outputs[0])[axis])
    indices = net.builder.emit(
        "slice", order, start=(0,) * len(size), size=size
    )
    net.define(node.outputs[1], Tensor(indices, np.ones(1), 0, x.layout))
    net.define(
        node.outputs[0],
        replace(x, value=take_along_last(net, x.value, indices)),
    )


def last(axis: int, rank: int) -> Layout:
    """Return the layout in which an axis lies behind all others."""
    return (*(other for other in range(rank) if other != axis), axis)


def take_along_last(
    net: LoweringContext, values: Handle, indices: Handle
) -> Handle:
    """Return, for each row of the last axis, its elements at the indices of the same row."""
    shape = net.builder.types[values].shape
    index_shape = net.builder.types[indices].shape
    rows = int(np.prod(shape[:-1], dtype=np.int64))
    columns = net.reshaped(values, (rows, shape[-1], 1))
    elements = net.builder.emit(
        "gather", columns, net.reshaped(indices, (rows, index_shape[-1]))
    )
    return net.reshaped(elements, index_shape)


def _ordered(net: LoweringContext, value: ir.Value | None) -> Tensor:
    """Return the most exact form whose integers are in the order of the reals."""
    tensor = net.as_computed(value)
    tensor = tensor if tensor.integral else net.accumulator(value)
    if net.dtype(tensor) in ("bool", "u8"):
        return net.cast_to(tensor, "i16")
    return (
        tensor
        if tensor.per_tensor and not tensor.clipped
        else net.requantized(value)
    )
