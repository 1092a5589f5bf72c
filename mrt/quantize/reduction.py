"""Reductions over whole axes: ReduceSum, ReduceMax, ReduceMin, all keeping the axes with size 1."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import onnx_ir as ir

from mrt.quantize.lowering import Lowering, integers_of
from mrt.quantize.rules import rule
from mrt.quantize.tensor import Tensor


def _axes(net: Lowering, node: ir.Node, tensor: Tensor) -> list[int]:
    """The physical axes to reduce, in ascending order."""
    rank = len(tensor.layout)
    return sorted(tensor.layout.index(axis % rank) for axis in integers_of(node, 1))


@rule("ReduceSum")
def reduce_sum(net: Lowering, node: ir.Node) -> None:
    """Sum in i32, then take off what the zero point added: count * zero_point."""
    x = net.settled(node.inputs[0])
    axes = _axes(net, node, x)
    value = net.builder.emit("cast", x.value, dtype="i32")
    count = 1
    for axis in axes:
        count *= net.builder.types[value].shape[axis]
        value = net.builder.emit("reduce_sum", value, axis=axis)
    if x.zero_point:
        excess = net.constant(np.full([1] * len(x.layout), x.zero_point * count, np.int32))
        value = net.builder.emit("sub", value, excess)
    net.define(node.outputs[0], replace(x, value=value, zero_point=0))


@rule("ReduceMax", "ReduceMin")
def reduce_extreme(net: Lowering, node: ir.Node) -> None:
    """The greatest or least integer stands for the greatest or least real."""
    x = net.settled(node.inputs[0])
    value = x.value
    for axis in _axes(net, node, x):
        value = net.builder.emit("reduce_max" if node.op_type == "ReduceMax" else "reduce_min", value, axis=axis)
    net.define(node.outputs[0], replace(x, value=value))
