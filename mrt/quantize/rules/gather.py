"""Rules of Gather and GatherElements, on computed values or constant tables.

An index that is not proven to lie inside the axis is clamped to it, where the float
model would fail. Negative indices count from the end, as in ONNX, wherever they can
occur.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import onnx_ir as ir

from cvm.program import DTYPES
from mrt.exact.fixed_point import FloatArray
from mrt.graph.canonical_values import constant_of, name_of, shape_of
from mrt.graph.operators import COMPARISONS
from mrt.quantize.builder import Handle
from mrt.quantize.context import LoweringContext
from mrt.quantize.rules.argmax_topk import last, take_along_last
from mrt.quantize.rules.integers import fits_integer
from mrt.quantize.rules.movement import movable
from mrt.quantize.rules.registry import rule
from mrt.quantize.tensor import (
    OUTPUT_BITS,
    Format,
    Tensor,
    choose_format,
    identity,
    quantized,
)
from mrt.table.table import MeasuredRange


@rule("Gather")
def gather(net: LoweringContext, node: ir.Node) -> None:
    """Write one gather of rows: the axis is moved to the front, all others are flattened."""
    axis = node.attributes["axis"].as_int()
    data = _data(net, node)
    indices_shape = shape_of(node.inputs[1])
    indices_rank = len(indices_shape)
    others = [other for other in range(len(data.layout)) if other != axis]
    data = net.to_layout(data, (axis, *others))
    size, *row_shape = net.shape(data)
    count = int(np.prod(indices_shape, dtype=np.int64))
    indices = net.reshaped(_indices(net, node.inputs[1], size), (1, count))
    row_length = int(np.prod(row_shape, dtype=np.int64))
    rows = net.reshaped(data.value, (1, size, row_length))
    gathered = net.builder.emit("gather", rows, indices)
    value = net.reshaped(gathered, (*indices_shape, *row_shape))
    # In the result the axes of the indices take the place of the axis.
    index_axes = range(axis, axis + indices_rank)
    behind = indices_rank - 1
    row_axes = [other if other < axis else other + behind for other in others]
    layout = (*index_axes, *row_axes)
    net.define(node.outputs[0], replace(data, value=value, layout=layout))


@rule("GatherElements")
def gather_elements(net: LoweringContext, node: ir.Node) -> None:
    """Write one gather within each row: the axis is moved behind all others."""
    data = _data(net, node)
    layout = last(node.attributes["axis"].as_int(), len(data.layout))
    data = net.to_layout(data, layout)
    size = net.shape(data)[-1]
    handle = _indices(net, node.inputs[1], size)
    in_float_layout = Tensor(handle, np.ones(1), 0, identity(len(layout)))
    indices = net.to_layout(in_float_layout, layout)
    indices_shape = shape_of(node.inputs[1])
    rows = (*(indices_shape[other] for other in layout[:-1]), size)
    value = data.value
    if rows != net.shape(data):
        value = net.builder.emit(
            "slice", value, start=(0,) * len(rows), size=rows
        )
    value = take_along_last(net, value, indices.value)
    net.define(node.outputs[0], replace(data, value=value))


def _data(net: LoweringContext, node: ir.Node) -> Tensor:
    """Return the values to look up.

    A constant table of integers alone stays as it is; one of thresholds for a wide input
    has the format of that.
    """
    values = node.inputs[0]
    array = constant_of(values)
    if array is None:
        return movable(net, values)
    assert values is not None
    layout = identity(array.ndim)
    if values.dtype == ir.DataType.BOOL:
        return Tensor(
            net.constant(array.astype(np.bool_)), np.ones(1), 0, layout
        )
    target = net.thresholds.get(name_of(node.outputs[0]))
    if target is None and fits_integer(array):
        return Tensor(
            net.constant(array.astype(np.int32)), np.ones(1), 0, layout
        )
    target = target or _format_of_table(net, node.outputs[0], array)
    handle = net.constant(quantized(array, target).astype(DTYPES[target.dtype]))
    return Tensor(handle, np.array([target.scale]), target.zero_point, layout)


def _format_of_table(
    net: LoweringContext, value: ir.Value, array: FloatArray
) -> Format:
    """Return a format that holds every entry of a table; 16 bits for entries only compared."""
    name, options = name_of(value), net.options
    interval = float(array.min()), float(array.max())
    only_compared = all(use.node.op_type in COMPARISONS for use in value.uses())
    bits = options.activation_bits_of(name)
    if only_compared or name in net.plan.output_path:
        bits = OUTPUT_BITS
    return choose_format(
        MeasuredRange(*interval, *interval),
        bits,
        interval=interval,
        scales=options.scales,
        scheme=options.scheme,
        unsigned=options.unsigned,
    )


def _indices(net: LoweringContext, value: ir.Value | None, size: int) -> Handle:
    """Return indices in the float model's order of axes, in i32, each inside 0..size-1."""
    array = constant_of(value)
    if array is not None:
        integers = array.astype(np.int64)
        from_start = np.where(integers < 0, integers + size, integers)
        return net.constant(from_start.clip(0, size - 1).astype(np.int32))
    indices = net.to_float_layout(net.cast_to(net.as_computed(value), "i32"))
    index = _from_start(net, indices, size)
    proven = net.builder.bounds[index]
    if proven.min >= 0 and proven.max < size:
        return index
    return net.builder.emit("clamp", index, min=0, max=size - 1)


def _from_start(net: LoweringContext, indices: Tensor, size: int) -> Handle:
    """Add `size` to the negative ones of computed indices."""
    if net.builder.bounds[indices.value].min >= 0:
        return indices.value
    emit, ones = net.builder.emit, [1] * len(indices.layout)
    index = emit("clamp", indices.value, min=-size, max=size - 1)
    zero = net.constant(np.zeros(ones, np.int32))
    negative = emit("greater", zero, index)
    shifted = emit("add", index, net.constant(np.full(ones, size, np.int32)))
    return emit("select", negative, shifted, index)
