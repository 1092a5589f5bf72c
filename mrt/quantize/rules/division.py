"""Rules of Div, Reciprocal and Sqrt of computed values, in i32.

A curve of one narrow value is a lookup table instead.

A divisor is never 0. A divisor that is nearer to 0 than a limit is replaced by the
limit: 2^-16 of the greatest measured magnitude or, if no measured value was negative or
0, a quarter of the least.
"""

from __future__ import annotations

import math

import numpy as np
import onnx_ir as ir

from mrt.graph.canonical_values import (
    constant_of,
    is_constant,
    name_of,
    shape_of,
)
from mrt.quantize.builder import Handle
from mrt.quantize.context import LoweringContext
from mrt.quantize.roots import (
    INVERSE_BITS,
    LEAST_MANTISSA,
    MANTISSA_BITS,
    Arithmetic,
    excess_bits,
    fine_root,
    inverse,
)
from mrt.quantize.rules.elementwise import operand_in_layout
from mrt.quantize.rules.octave_division import (
    constant_numerator,
    quotient_by_code,
)
from mrt.quantize.rules.registry import rule
from mrt.quantize.tensor import (
    WIDE_BITS,
    Format,
    Layout,
    Tensor,
    common_layout,
)
from mrt.quantize.wide_values import in_30_bits

SQUARE_ROOT_BITS = 8
"""Bits of a square root after the point of its integers."""


@rule("Div")
def divide(net: LoweringContext, node: ir.Node) -> None:
    """Write x * (2^30 / m) / 2^e, where the divisor is m * 2^e with m of 15 bits; a quotient by a code has its own rule."""
    by_code = quotient_by_code(net, node)
    if by_code is not None:
        net.define(node.outputs[0], by_code)
        return
    computed = [
        net.as_computed(value)
        for value in node.inputs
        if not is_constant(value)
    ]
    layout = common_layout(computed, len(shape_of(node.outputs[0])))
    numerator = _numerator(net, node.inputs[0], layout)
    net.define(node.outputs[0], _quotient(net, numerator, node.inputs[1]))


@rule("Reciprocal")
def reciprocal(net: LoweringContext, node: ir.Node) -> None:
    """Write 1 / x as `divide` does, with the numerator 1 = 2^14 * 2^-14."""
    layout = net.as_computed(node.inputs[0]).layout
    one = net.constant(np.full([1] * len(layout), LEAST_MANTISSA, np.int32))
    scale = np.array([math.ldexp(1.0, 1 - MANTISSA_BITS)])
    numerator = Tensor(one, scale, 0, layout)
    net.define(node.outputs[0], _quotient(net, numerator, node.inputs[0]))


@rule("Sqrt")
def square_root(net: LoweringContext, node: ir.Node) -> None:
    """Write isqrt of the value in 30 bits, with 8 bits after the point.

    A negative value counts as 0. Where scales are powers of two, that of the radicand
    is made an even power, so that its root is a power of two as well.
    """
    x = in_30_bits(net, node.inputs[0])
    scale = float(x.scale[0])
    _, exponent = math.frexp(scale)
    if (
        net.options.scales == "shift" and exponent % 2 == 0
    ):  # scale = 2^(exponent - 1)
        even = Format("i32", scale * 2, 0, 0, 2**WIDE_BITS)
        x = net.requantize_to(x, even)
    a = Arithmetic(net.builder, len(x.layout))
    radicand = a.clamp(x.value, 0, 2**31 - 1)
    value = fine_root(a, radicand, SQUARE_ROOT_BITS)
    root_scale = np.sqrt(np.ldexp(x.scale, -2 * SQUARE_ROOT_BITS))
    net.define(node.outputs[0], Tensor(value, root_scale, 0, x.layout))


def _numerator(
    net: LoweringContext, value: ir.Value | None, layout: Layout
) -> Tensor:
    """Return a numerator with 15 bits in i32, shifted left where it is proven to have fewer."""
    array = constant_of(value)
    if array is not None:
        return constant_numerator(net, array, layout)
    narrow = operand_in_layout(net, value, net.in_16_bits(value), layout)
    x = net.widen(narrow)
    proven = net.builder.bounds[x.value]
    length = max(abs(proven.min), abs(proven.max)).bit_length()
    spare = max(MANTISSA_BITS - length, 0)
    a = Arithmetic(net.builder, len(layout))
    return Tensor(a.left(x.value, spare), np.ldexp(x.scale, -spare), 0, layout)


def _quotient(
    net: LoweringContext, x: Tensor, divisor: ir.Value | None
) -> Tensor:
    """Return x / divisor as x * (2^30 / mantissa) / 2^(1 + excess).

    The divisor is mantissa * 2^excess; the quotient counts in steps of 2^-29 * scale of
    x / scale of the divisor.
    """
    fine_divisor = in_30_bits(net, divisor)
    y = operand_in_layout(net, divisor, fine_divisor, x.layout)
    least_measured = net.ranges.of(name_of(divisor)).min
    always_positive = least_measured > 0
    a, scale = Arithmetic(net.builder, len(y.layout)), float(y.scale[0])
    magnitude = y.value if always_positive else net.builder.emit("abs", y.value)
    magnitude = a.clamp(
        magnitude, _least_divisor(least_measured, scale), 2**31 - 1
    )
    excess = excess_bits(a, magnitude, MANTISSA_BITS)
    shifted = a.right_by(magnitude, excess)
    mantissa = a.clamp(shifted, LEAST_MANTISSA, 2**MANTISSA_BITS)
    factor = inverse(a, mantissa)
    if not always_positive:
        factor = a.mul(factor, _sign(a, y.value))
    product = a.mul(x.value, factor, 1)
    value = a.right_by(product, excess)
    steps = np.ldexp(x.scale / scale, 1 - INVERSE_BITS)
    return Tensor(value, steps, 0, y.layout)


def _least_divisor(least_measured: float, scale: float) -> int:
    """Return the least magnitude to divide by, in steps: 2^14, or a quarter of the least one."""
    most: int = 2**WIDE_BITS
    quarter = min(least_measured / 4 / scale, most)
    return max(LEAST_MANTISSA, math.floor(quarter))


def _sign(a: Arithmetic, y: Handle) -> Handle:
    """Return -1 below 0, else 1."""
    minus_one_or_zero = a.clamp(y, -1, 0)
    return a.add_number(a.left(minus_one_or_zero, 1), 1)
