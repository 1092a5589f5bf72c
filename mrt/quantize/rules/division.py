"""Quotients, reciprocals and square roots of computed values, in i32. A curve of one narrow value is a table instead.

A divisor is never 0: what lies nearer to 0 than 2^-16 of the greatest magnitude calibration saw, or than a quarter of the
least where it saw nothing negative and no 0, is divided by as if it lay there.
"""

from __future__ import annotations

import math

import numpy as np
import onnx_ir as ir

from mrt.exact.fixed_point import quantize_array, usable_scale
from mrt.graph.canonical_values import constant_of, name_of, shape_of
from mrt.quantize.builder import Handle
from mrt.quantize.context import LoweringContext, common_layout
from mrt.quantize.roots import (
    INVERSE_BITS,
    MANTISSA_BITS,
    Arithmetic,
    excess_bits,
    fine_root,
    inverse,
)
from mrt.quantize.rules.elementwise import arranged, laid_out
from mrt.quantize.rules.registry import rule
from mrt.quantize.tensor import HEADROOM, Format, Layout, Tensor

WIDE_BITS = 30  # of a divisor or a radicand at the greatest magnitude expected
SQUARE_ROOT_BITS = 8  # of a square root below the point of the integers' own


@rule("Div")
def divide(net: LoweringContext, node: ir.Node) -> None:
    """x * (2^30 / m) / 2^e, where the divisor is m * 2^e with m of 15 bits."""
    layout = common_layout(_computed(net, node), len(shape_of(node.outputs[0])))
    net.define(
        node.outputs[0],
        _quotient(net, _numerator(net, node.inputs[0], layout), node.inputs[1]),
    )


@rule("Reciprocal")
def reciprocal(net: LoweringContext, node: ir.Node) -> None:
    """1 / x."""
    layout = net.as_computed(node.inputs[0]).layout
    one = net.constant(np.full([1] * len(layout), 2 ** (MANTISSA_BITS - 1), np.int32))
    x = Tensor(one, np.array([math.ldexp(1.0, 1 - MANTISSA_BITS)]), 0, layout)
    net.define(node.outputs[0], _quotient(net, x, node.inputs[0]))


@rule("Sqrt")
def square_root(net: LoweringContext, node: ir.Node) -> None:
    """isqrt of the value in 30 bits, and 8 bits below the point; what is negative counts as 0."""
    x = _wide(net, node.inputs[0])
    scale = float(x.scale[0])
    if (
        net.options.scales == "shift" and math.frexp(scale)[1] % 2 == 0
    ):  # 2^odd, whose root is no power of two
        x = net.requantize_to(x, Format("i32", scale * 2, 0, 0, 2**WIDE_BITS))
    a = Arithmetic(net.builder, len(x.layout))
    value = fine_root(a, a.clamp(x.value, 0, 2**31 - 1), SQUARE_ROOT_BITS)
    net.define(
        node.outputs[0],
        Tensor(value, np.sqrt(np.ldexp(x.scale, -2 * SQUARE_ROOT_BITS)), 0, x.layout),
    )


def _computed(net: LoweringContext, node: ir.Node) -> list[Tensor]:
    return [
        net.as_computed(value) for value in node.inputs if constant_of(value) is None
    ]


def _numerator(net: LoweringContext, value: ir.Value | None, layout: Layout) -> Tensor:
    """15 bits in i32."""
    array = constant_of(value)
    if array is not None:
        scale = usable_scale(
            float(np.abs(array).max()) / (2**MANTISSA_BITS - 1), net.options.scales
        )
        integers = quantize_array(
            array, scale, -(2**MANTISSA_BITS), 2**MANTISSA_BITS
        ).astype(np.int32)
        return Tensor(
            net.constant(arranged(integers, layout)), np.array([scale]), 0, layout
        )
    x = net.widen(laid_out(net, value, net.in_16_bits(value), layout))
    proven = net.builder.bounds[x.value]
    spare = max(MANTISSA_BITS - max(abs(proven.min), abs(proven.max)).bit_length(), 0)
    a = Arithmetic(net.builder, len(layout))
    return Tensor(a.left(x.value, spare), np.ldexp(x.scale, -spare), 0, layout)


def _wide(net: LoweringContext, value: ir.Value | None) -> Tensor:
    """In 30 bits, straight from the accumulator, with room for twice what calibration saw."""
    tensor, seen = net.as_computed(value), net.table.ranges[name_of(value)]
    reach = min(
        max(abs(seen.min), abs(seen.max)) * HEADROOM,
        max(map(abs, net.interval(tensor))),
    )
    scale = usable_scale(math.ldexp(reach, -WIDE_BITS), net.options.scales)
    return net.requantize_to(
        tensor, Format("i32", scale, 0, -(2**WIDE_BITS), 2**WIDE_BITS), name_of(value)
    )


def _quotient(net: LoweringContext, x: Tensor, divisor: ir.Value | None) -> Tensor:
    y, least_seen = (
        laid_out(net, divisor, _wide(net, divisor), x.layout),
        net.table.ranges[name_of(divisor)].min,
    )
    a, scale = Arithmetic(net.builder, len(y.layout)), float(y.scale[0])
    least = max(
        2 ** (MANTISSA_BITS - 1), math.floor(min(least_seen / 4 / scale, 2**WIDE_BITS))
    )
    size = y.value if least_seen > 0 else net.builder.emit("abs", y.value)
    size = a.clamp(size, least, 2**31 - 1)
    excess = excess_bits(a, size, MANTISSA_BITS)
    mantissa = a.clamp(
        a.right(size, excess, computed=True), 2 ** (MANTISSA_BITS - 1), 2**MANTISSA_BITS
    )
    steep = inverse(a, mantissa)
    if least_seen <= 0:
        steep = a.mul(steep, _sign(net, a, y.value))
    product = a.mul(x.value, steep, 1)
    value = a.right(product, excess, computed=True)
    return Tensor(value, np.ldexp(x.scale / scale, 1 - INVERSE_BITS), 0, y.layout)


def _sign(net: LoweringContext, a: Arithmetic, y: Handle) -> Handle:
    """-1 below 0, else 1."""
    below = a.clamp(y, -1, 0)
    return a.add(a.left(below, 1), number=1)
