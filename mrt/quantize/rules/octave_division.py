"""Writes a quotient by an octave code: both operands have exponents of their own.

    x = m * 2^e,    divisor = n * 2^o with n of 15 bits
    x / divisor = m * (2^29 / n) / 2^(29 + o - e)

The quotient counts in steps of which 2^28 are at least twice the greatest quotient that was
measured. What would be shifted to the left is greater than that, and ends at 2^29 steps.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from mrt.exact.fixed_point import FloatArray, quantize_array, usable_scale
from mrt.graph.canonical_values import constant_of, name_of, shape_of
from mrt.quantize.builder import Handle
from mrt.quantize.context import LoweringContext
from mrt.quantize.octaves import MOST_BITS
from mrt.quantize.roots import MANTISSA_BITS, Arithmetic, excess_bits
from mrt.quantize.rules.elementwise import operand_in_layout
from mrt.quantize.tensor import (
    HEADROOM,
    WIDE_BITS,
    Layout,
    Tensor,
    common_layout,
    in_layout,
)
from mrt.quantize.wide_values import as_wide

FULL_BITS = 28
"""A product of a mantissa of 15 bits and an inverse of 15 has at least so many."""


def quotient_by_code(net: LoweringContext, node: ir.Node) -> Tensor | None:
    """Return the quotient of a Div by an octave code; None if its divisor is none."""
    x, divisor = node.inputs
    code = net.code_of(divisor)
    if code is None:
        return None
    rank = len(shape_of(node.outputs[0]))
    a = Arithmetic(net.builder, rank)
    array = constant_of(x)
    if array is not None:
        layout = common_layout([code], rank)
        numerator = constant_numerator(net, array, layout)
    else:
        computed = _numerator_form(net, x)
        layout = common_layout([computed, code], rank)
        numerator = operand_in_layout(net, x, computed, layout)
    m = _mantissa(a, net, numerator)
    n = _inverse(a, operand_in_layout(net, divisor, code, layout))
    greatest = net.ranges.of(name_of(node.outputs[0])).magnitude
    finest = m.scale * n.scale
    step = _power_of_two_above(greatest * HEADROOM / 2**FULL_BITS / finest)
    shift = a.add_number(a.sub(n.exponent, m.exponent), step)
    value = _shifted(a, m.mantissa, a.mul(m.mantissa, n.mantissa), shift)
    scale = np.array([math.ldexp(finest, step)])
    return Tensor(value, scale, 0, layout)


def constant_numerator(
    net: LoweringContext, array: FloatArray, layout: Layout
) -> Tensor:
    """Return a constant of 15 bits, whose greatest number has all of them."""
    greatest = float(np.abs(array).max())
    scale = usable_scale(greatest / (2**MANTISSA_BITS - 1), net.options.scales)
    limit = 2**MANTISSA_BITS
    integers = quantize_array(array, scale, -limit, limit).astype(np.int32)
    value = net.constant(in_layout(integers, layout))
    return Tensor(value, np.array([scale]), 0, layout)


@dataclass(frozen=True)
class _Factor:
    """mantissa * 2^exponent * scale of a numerator; mantissa / 2^exponent * scale of an inverse."""

    mantissa: Handle
    exponent: Handle
    scale: float


def _numerator_form(net: LoweringContext, x: ir.Value | None) -> Tensor:
    """Return a numerator as a code, in 30 bits if it is wide, else in 16."""
    code = net.code_of(x)
    if code is not None:
        return code
    return as_wide(net, x) if name_of(x) in net.plan.wide else net.in_16_bits(x)


def _mantissa(a: Arithmetic, net: LoweringContext, x: Tensor) -> _Factor:
    """Return a numerator with a mantissa of 15 bits, signed, all of which are used unless it is 0."""
    scale = float(x.scale[0])
    if x.octaves is not None:
        bits, exponent = x.octaves.full_parts(a, x.value)
        return _Factor(bits, exponent, math.ldexp(scale, -x.octaves.spare))
    value, own_exponent, spare = _of_30_bits(a, net.widen(x).value)
    magnitude = a.builder.emit("abs", value)
    excess = excess_bits(a, magnitude, MANTISSA_BITS)
    limit = 2**MANTISSA_BITS
    mantissa = a.clamp(a.right_by(value, excess), -limit, limit)
    exponent = excess
    if own_exponent is not None:
        exponent = a.add(excess, own_exponent)
    return _Factor(mantissa, exponent, math.ldexp(scale, -spare))


def _of_30_bits(
    a: Arithmetic, value: Handle
) -> tuple[Handle, Handle | None, int]:
    """Return integers of 15 to 30 bits, or 0, with an exponent, and by how many bits they are finer."""
    proven = a.builder.bounds[value]
    length = max(abs(proven.min), abs(proven.max)).bit_length()
    if length <= MANTISSA_BITS + 1:
        spare = WIDE_BITS - length
        return a.left(value, spare), None, spare
    limit = 2**MANTISSA_BITS
    inside = a.clamp(value, -limit, limit)
    is_small = a.builder.emit("equal", value, inside)
    finer = a.left(inside, MANTISSA_BITS)
    value = a.builder.emit("select", is_small, finer, value)
    one = a.builder.emit("cast", is_small, dtype="i32")
    return value, a.mul(one, a.number(-MANTISSA_BITS)), 0


def _inverse(a: Arithmetic, code: Tensor) -> _Factor:
    """Return 1 / divisor with a mantissa from 2^14 to 2^15; 0 counts as the least number that is not."""
    octaves = code.octaves
    assert octaves is not None, "the divisor is a code"
    bits, exponent = octaves.full_parts(a, code.value)
    bits = a.clamp(bits, 2 ** (MOST_BITS - 1), 2**MOST_BITS)
    power = MOST_BITS + MANTISSA_BITS - 1
    half_up = a.add_number(a.floor_right(bits, 1), 2**power)
    inverse = a.builder.emit("intdiv", half_up, bits)
    scale = math.ldexp(1 / float(code.scale[0]), octaves.spare - power)
    return _Factor(inverse, exponent, scale)


def _power_of_two_above(real: float) -> int:
    """Return the least k with 2^k >= real, for a real above 0; 0 for 0."""
    mantissa, exponent = math.frexp(real)
    return exponent - 1 if mantissa == 0.5 else exponent


def _shifted(
    a: Arithmetic, mantissa: Handle, product: Handle, shift: Handle
) -> Handle:
    """Return product / 2^shift; where that is no shift to the right, what is beyond every quotient, with the mantissa's sign."""
    value = a.right_by(product, a.clamp(shift, 0, 31))
    if a.builder.bounds[shift].min >= 0:
        return value
    is_beyond = a.builder.emit("greater", a.number(0), shift)
    end = a.left(a.clamp(mantissa, -1, 1), FULL_BITS + 1)
    return a.builder.emit("select", is_beyond, end, value)
