"""Lookup by index: Gather and GatherElements, of computed values or of constant tables.

An index that is not proven to lie inside the axis stops at its ends; the float model would refuse it. Negative ones count
from behind, as in ONNX, wherever they can occur.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import onnx_ir as ir

from cvm.program import DTYPES
from mrt.exact.fixed_point import FloatArray
from mrt.graph.canonical_values import constant_of, name_of, shape_of
from mrt.quantize.builder import Handle
from mrt.quantize.context import LoweringContext, identity, quantized
from mrt.quantize.rules.argmax_topk import last, take_along_last
from mrt.quantize.rules.integers import fits_integer
from mrt.quantize.rules.movement import movable
from mrt.quantize.rules.registry import rule
from mrt.quantize.tensor import OUTPUT_BITS, Format, Tensor, choose_format
from mrt.table.table import MeasuredRange

COMPARISONS = frozenset({"Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual"})


@rule("Gather")
def gather(net: LoweringContext, node: ir.Node) -> None:
    """The axis in front and all others flattened: one gather of rows."""
    axis, data = node.attributes["axis"].as_int(), _data(net, node)
    rank, wanted = len(data.layout), shape_of(node.inputs[1])
    others = [other for other in range(rank) if other != axis]
    data = net.to_layout(data, (axis, *others))
    size, *rest = net.shape(data)
    indices = net.reshaped(
        _indices(net, node.inputs[1], size), (1, int(np.prod(wanted, dtype=np.int64)))
    )
    rows = net.reshaped(data.value, (1, size, int(np.prod(rest, dtype=np.int64))))
    value = net.reshaped(net.builder.emit("gather", rows, indices), (*wanted, *rest))
    moved = (other if other < axis else other - 1 + len(wanted) for other in others)
    layout = (*range(axis, axis + len(wanted)), *moved)
    net.define(node.outputs[0], replace(data, value=value, layout=layout))


@rule("GatherElements")
def gather_elements(net: LoweringContext, node: ir.Node) -> None:
    """The axis behind all others: one gather within each row."""
    axis, data, wanted = (
        node.attributes["axis"].as_int(),
        _data(net, node),
        shape_of(node.inputs[1]),
    )
    layout = last(axis, len(data.layout))
    data = net.to_layout(data, layout)
    size = net.shape(data)[-1]
    indices = net.to_layout(
        Tensor(
            _indices(net, node.inputs[1], size), np.ones(1), 0, identity(len(layout))
        ),
        layout,
    )
    rows = (*(wanted[other] for other in layout[:-1]), size)
    value = data.value
    if rows != net.shape(data):
        value = net.builder.emit("slice", value, start=(0,) * len(rows), size=rows)
    net.define(
        node.outputs[0], replace(data, value=take_along_last(net, value, indices.value))
    )


def _data(net: LoweringContext, node: ir.Node) -> Tensor:
    array = constant_of(node.inputs[0])
    if array is None:
        return movable(net, node.inputs[0])
    assert node.inputs[0] is not None
    layout = identity(array.ndim)
    if node.inputs[0].dtype == ir.DataType.BOOL:
        return Tensor(net.constant(array.astype(np.bool_)), np.ones(1), 0, layout)
    if fits_integer(array):
        return Tensor(net.constant(array.astype(np.int32)), np.ones(1), 0, layout)
    target = _format_of_table(net, node.outputs[0], array)
    integers = quantized(array, target).astype(DTYPES[target.dtype])
    return Tensor(
        net.constant(integers), np.array([target.scale]), target.zero_point, layout
    )


def _format_of_table(
    net: LoweringContext, value: ir.Value, array: FloatArray
) -> Format:
    """The format in which every entry of a table has an integer; 16 bits for what is only compared."""
    ends = float(array.min()), float(array.max())
    compared = all(use.node.op_type in COMPARISONS for use in value.uses())
    bits = (
        OUTPUT_BITS
        if compared or name_of(value) in net.output_path
        else net.options.activation_bits_of(name_of(value))
    )
    options = net.options
    seen = MeasuredRange(*ends, *ends)
    return choose_format(
        seen,
        bits,
        interval=ends,
        scales=options.scales,
        scheme=options.scheme,
        unsigned=options.unsigned,
    )


def _indices(net: LoweringContext, value: ir.Value | None, size: int) -> Handle:
    """Indices in the float model's order of axes, in i32, each inside 0..size-1."""
    array = constant_of(value)
    if array is not None:
        integers = array.astype(np.int64)
        return net.constant(
            np.where(integers < 0, integers + size, integers)
            .clip(0, size - 1)
            .astype(np.int32)
        )
    indices = net.to_float_layout(net.cast_to(net.as_computed(value), "i32"))
    index, emit = indices.value, net.builder.emit
    if net.builder.bounds[index].min < 0:
        ones = [1] * len(indices.layout)
        index = emit("clamp", index, min=-size, max=size - 1)
        negative = emit("greater", net.constant(np.zeros(ones, np.int32)), index)
        from_behind = emit("add", index, net.constant(np.full(ones, size, np.int32)))
        index = emit("select", negative, from_behind, index)
    proven = net.builder.bounds[index]
    if proven.min >= 0 and proven.max < size:
        return index
    return emit("clamp", index, min=0, max=size - 1)
