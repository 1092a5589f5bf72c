"""Rules of ReduceSum, ReduceMax and ReduceMin along axes, which stay with size 1."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np
import onnx_ir as ir

from cvm.errors import Unproven
from mrt.graph.canonical_values import integers_of, name_of
from mrt.quantize.builder import Handle
from mrt.quantize.context import LoweringContext
from mrt.quantize.decompose import shifted_right
from mrt.quantize.rules.elementwise import narrow_format
from mrt.quantize.rules.octave_sums import sum_of_codes
from mrt.quantize.rules.registry import rule
from mrt.quantize.tensor import Tensor


def _axes(net: LoweringContext, node: ir.Node, tensor: Tensor) -> list[int]:
    """Return the physical axes to reduce, in ascending order."""
    rank = len(tensor.layout)
    return sorted(
        tensor.layout.index(axis % rank) for axis in integers_of(node, 1)
    )


@rule("ReduceSum")
def reduce_sum(net: LoweringContext, node: ir.Node) -> None:
    """Sum in i32, axis by axis; an accumulator with no other reader is summed as it is, codes as codes."""
    codes = net.codes_for(node, node.inputs[:1])
    if codes:
        greatest = net.greatest_expected(node.outputs[0])
        axes = _axes(net, node, codes[0])
        total = sum_of_codes(net, codes[0], axes, greatest)
        net.define(node.outputs[0], total)
        return
    x = net.accumulator(node.inputs[0])
    if not x.per_tensor or x.clipped:
        x = net.requantized(node.inputs[0])
    bits = net.options.sum_bits
    if bits is not None and not net.is_requantized(x):
        name = name_of(node.inputs[0])
        x = net.requantize_to(x, narrow_format(net, [name], bits))
    value, shift = sum_over(net, net.widen(x).value, _axes(net, node, x))
    net.define(
        node.outputs[0], Tensor(value, np.ldexp(x.scale, shift), 0, x.layout)
    )


def sum_over(
    net: LoweringContext, value: Handle, axes: Iterable[int]
) -> tuple[Handle, int]:
    """Return the sum along axes in steps of 2^shift, and the shift that its proof needed."""
    total_shift = 0
    for axis in axes:
        value, shift = _summed(net, value, axis)
        total_shift += shift
    return value, total_shift


def _summed(
    net: LoweringContext, value: Handle, axis: int
) -> tuple[Handle, int]:
    """Sum along one axis the terms shifted right, half up, by the least provable shift."""
    for shift in range(31):
        try:
            terms = shifted_right(net.builder, value, shift)
            return net.builder.emit("reduce_sum", terms, axis=axis), shift
        except Unproven:
            continue
    raise AssertionError(
        "terms of one bit sum to less than the elements of a tensor"
    )


@rule("ReduceMax", "ReduceMin")
def reduce_extreme(net: LoweringContext, node: ir.Node) -> None:
    """Write reduce_max or reduce_min: the extreme integer, or code, represents the extreme real."""
    codes = net.codes_for(node, node.inputs[:1])
    x = codes[0] if codes else net.requantized(node.inputs[0])
    value = x.value
    instruction = "reduce_max" if node.op_type == "ReduceMax" else "reduce_min"
    for axis in _axes(net, node, x):
        value = net.builder.emit(instruction, value, axis=axis)
    net.define(node.outputs[0], replace(x, value=value))
