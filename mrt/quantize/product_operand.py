"""The form in which products read a computed value: 8 bits, or 16 if the options assign 16.

Where other readers have more bits (`product_bits`), products have a form of their own,
requantized once more. Its channels have the scales and centres that the calibration
table decided.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import onnx_ir as ir

from mrt.exact.fixed_point import FloatArray
from mrt.graph.canonical_values import name_of
from mrt.graph.notes import is_whole
from mrt.quantize.channel_centres import decided_centres
from mrt.quantize.context import LoweringContext
from mrt.quantize.roots import Arithmetic
from mrt.quantize.tensor import (
    Layout,
    Tensor,
    identity,
)
from mrt.quantize.wide_values import as_wide

BYTE = 256
LOW_BITS = 15
"""Bits of the low half of a wide operand."""

MOST_HIGH = 32767
"""The greatest high half; with -32768 the proof of the low half would need more than i32."""


@dataclass(frozen=True, eq=False)
class OperandPart:
    """A part of an operand; its steps are 2^exponent of the finest part's."""

    tensor: Tensor
    exponent: int = 0


def product_operand(net: LoweringContext, value: ir.Value | None) -> Tensor:
    """Return a computed operand of a product."""
    assert value is not None
    name = name_of(value)
    bits = net.options.product_bits_of(name)
    if bits < net.options.activation_bits_of(name):
        return _own_form(net, value, bits)
    tensor = net.requantized(value)
    if net.dtype(tensor) == "i16" and bits <= 8:
        if tensor.integral and (is_whole(value) or _fits_byte(net, tensor)):
            return _as_byte(net, tensor)
        target = net.format_for(name, net.options.activation_bits_of(name))
        return net.requantize_to(net.as_computed(value), target, name)
    return tensor


def _fits_byte(net: LoweringContext, x: Tensor) -> bool:
    """Whether integers are proven to be among 256 that follow each other."""
    proven = net.builder.bounds[x.value]
    return int(proven.max) - int(proven.min) < BYTE


def _as_byte(net: LoweringContext, x: Tensor) -> Tensor:
    """Return integers as i8 in steps of 1, counted from their middle; as they are if i8 is too narrow, or has no such middle."""
    zero_point = -BYTE // 2 - int(net.builder.bounds[x.value].min)
    if not _fits_byte(net, x) or not -BYTE // 2 <= zero_point < BYTE // 2:
        return x
    value = net.rescale(x, np.ones(1), "i8", zero_point)
    return replace(x, value=value, zero_point=zero_point)


def _own_form(net: LoweringContext, value: ir.Value, bits: int) -> Tensor:
    """Return the value in fewer bits than other readers have."""
    tensor, name = net.as_computed(value), name_of(value)
    has_few_bits = net.is_requantized(tensor) and net.dtype(tensor) == "i8"
    if tensor.integral or has_few_bits:
        return net.requantized(value)
    centres = decided_centres(net, value)
    if centres is not None and tensor.layout == identity(2):
        tensor = _centred(net, tensor, centres)
    target = net.format_for(name, bits)
    factors = net.factors_for_products(name, target)
    if factors is not None and net.can_requantize_by_channel(tensor, target):
        return net.requantize_by_channel(tensor, target, factors, name)
    return net.requantize_to(
        tensor, net.format_for(name, bits, clipped=False), name
    )


def _centred(
    net: LoweringContext, tensor: Tensor, centres: FloatArray
) -> Tensor:
    """Subtract the centres [C], in steps of the tensor; the result has the centres that this comes to."""
    is_symmetric = tensor.zero_point == 0
    wide = net.cast_to(tensor, "i32") if is_symmetric else net.widen(tensor)
    steps = np.rint(centres / wide.scale).astype(np.int32)
    constant = net.constant(steps[None])
    value = net.builder.emit("sub", wide.value, constant)
    return replace(wide, value=value, centres=steps * wide.scale)


def layer_operands(
    net: LoweringContext, node: ir.Node, layout: Layout
) -> list[OperandPart]:
    """Return what a Conv or a Gemm multiplies, or the two halves of it if it is wide."""
    value = node.inputs[0]
    if name_of(node.outputs[0]) in net.plan.wide_products:
        x = as_wide(net, value)
        is_code = net.code_of(value) is not None  # its scale may be 1 as well
        if net.dtype(x) == "i32" and (is_code or not x.integral):
            return halves(net, net.to_layout(x, layout))
    operand = product_operand(net, value)
    return [OperandPart(net.to_layout(operand, layout))]


def halves(net: LoweringContext, x: Tensor) -> list[OperandPart]:
    """Return x / 2^15, half up, and what remains of it, both in i16."""
    a = Arithmetic(net.builder, len(x.layout))
    high = a.clamp(a.right(x.value, LOW_BITS), -MOST_HIGH, MOST_HIGH)
    low = a.sub(x.value, a.left(high, LOW_BITS))
    half = 1 << (LOW_BITS - 1)
    low = a.clamp(low, -half, half)
    handles = [
        net.builder.emit("cast", handle, dtype="i16") for handle in (high, low)
    ]
    scale = np.ldexp(x.scale, LOW_BITS)
    upper, lower = (replace(x, value=handle, scale=scale) for handle in handles)
    return [OperandPart(upper, LOW_BITS), OperandPart(lower)]
