"""Exact rules of Div and Mod for integral values, of any signs.

A divisor of 0, for which ONNX defines no result, is replaced by 1.
"""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from cvm.errors import Unproven
from mrt.graph.canonical_values import constant_of
from mrt.graph.integer_quotients import IntegerQuotient
from mrt.quantize.builder import Handle
from mrt.quantize.context import LoweringContext
from mrt.quantize.rules.elementwise import I32
from mrt.quantize.rules.integers import define_integral, in_i32, result_layout
from mrt.quantize.rules.registry import integer_rule
from mrt.quantize.tensor import Layout


@integer_rule("Div")
def divide(net: LoweringContext, node: ir.Node) -> None:
    """Write Div of integer types: the quotient truncated toward zero, as in ONNX."""
    if node.outputs[0].dtype == ir.DataType.FLOAT:
        raise Unproven("intdiv.fits", "a quotient of floats is no integer")
    x, divisor, layout = _operands(net, node)
    x = _dividend(net, node, x, layout)
    quotient = _truncated(net, x, divisor, layout)
    define_integral(net, node.outputs[0], quotient, layout)


def _dividend(
    net: LoweringContext, node: ir.Node, x: Handle, layout: Layout
) -> Handle:
    """Return the number of which a quotient is rounded down, where it is proven never to be negative; else x.

    The quotient of such a number is the same rounded toward zero.
    """
    quotient = IntegerQuotient.behind(node.outputs[0])
    if quotient is None or not quotient.rounds_down:
        return x
    number = in_i32(net, quotient.x, layout)
    return number if net.builder.bounds[number].min >= 0 else x


@integer_rule("Mod")
def modulus(net: LoweringContext, node: ir.Node) -> None:
    """Write Mod: the remainder r = x - trunc(x / |k|) * |k|, which has the sign of x.

    That is ONNX's result with fmod=1. Otherwise the result has the sign of the divisor
    k: it is r + k where the signs of r and k differ.
    """
    x, divisor, layout = _operands(net, node)
    emit, bounds = net.builder.emit, net.builder.bounds
    magnitude = _magnitude(net, divisor, layout)
    quotient = emit("intdiv", x, magnitude)
    multiple = emit("mul", quotient, magnitude, shift=0)
    most = bounds[magnitude].max - 1
    x_may_be_negative = bounds[x].min < 0
    least = -most if x_may_be_negative else 0
    remainder = emit("clamp", emit("sub", x, multiple), min=least, max=most)
    signs_may_differ = x_may_be_negative or bounds[divisor].min < 0
    if not node.attributes["fmod"].as_int() and signs_may_differ:
        remainder = _with_sign_of_divisor(net, remainder, divisor, layout)
        low = 0 if bounds[divisor].min >= 0 else -most
        high = 0 if bounds[divisor].max <= 0 else most
        remainder = emit("clamp", remainder, min=low, max=high)
    define_integral(net, node.outputs[0], remainder, layout)


def lowest_bits(
    net: LoweringContext, x: Handle, layout: Layout, interval: tuple[int, int]
) -> Handle:
    """Return the integer of an interval of 2^b integers whose lowest b bits are those of x, in i32."""
    emit, (low, high) = net.builder.emit, interval
    count = _scalar(net, high - low + 1, layout)
    x = _without_sign(net, x, layout)
    quotient = emit("intdiv", x, count)
    rest = emit("sub", x, emit("mul", quotient, count, shift=0))
    rest = emit("clamp", rest, min=0, max=high - low)
    if low == 0:
        return rest
    is_above = emit("greater", rest, _scalar(net, high, layout))
    rest = emit("select", is_above, emit("sub", rest, count), rest)
    return emit("clamp", rest, min=low, max=high)


def _without_sign(net: LoweringContext, x: Handle, layout: Layout) -> Handle:
    """Return x + 2^31 where x is negative, which has the same lowest bits, and x elsewhere."""
    emit, bounds = net.builder.emit, net.builder.bounds
    if bounds[x].min >= 0:
        return x
    least = _scalar(net, I32[0], layout)
    below_zero = emit("clamp", x, min=I32[0], max=-1)
    others = emit("clamp", x, min=0, max=I32[1])
    is_below = emit("greater", _scalar(net, 0, layout), x)
    return emit("select", is_below, emit("sub", below_zero, least), others)


def _with_sign_of_divisor(
    net: LoweringContext, remainder: Handle, divisor: Handle, layout: Layout
) -> Handle:
    """Return remainder + divisor where their signs differ, else the remainder."""
    emit = net.builder.emit
    zero = _scalar(net, 0, layout)
    if net.builder.bounds[divisor].min >= 0:
        differs = emit("greater", zero, remainder)
    else:
        sign = emit("clamp", remainder, min=-1, max=1)
        sign_of_divisor = emit("clamp", divisor, min=-1, max=1)
        product = emit("mul", sign, sign_of_divisor, shift=0)
        differs = emit("greater", zero, product)
    return emit("select", differs, emit("add", remainder, divisor), remainder)


def _operands(
    net: LoweringContext, node: ir.Node
) -> tuple[Handle, Handle, Layout]:
    layout = result_layout(net, node)
    x = in_i32(net, node.inputs[0], layout)
    divisor = in_i32(net, node.inputs[1], layout)
    array = constant_of(node.inputs[1])
    if array is not None and array.size == 1:  # of any rank
        divisor = _scalar(net, int(array.item()), layout)
    return x, divisor, layout


def _truncated(
    net: LoweringContext, x: Handle, divisor: Handle, layout: Layout
) -> Handle:
    """Return trunc(x / divisor), as x / |divisor| with x negated where the divisor is negative.

    If the divisor is proven not to be 0, one intdiv computes it.
    """
    emit, proven = net.builder.emit, net.builder.bounds[divisor]
    if proven.min > 0 or proven.max < 0:
        return emit("intdiv", x, divisor)
    if proven.min < 0:
        below_zero = emit("greater", _scalar(net, 0, layout), divisor)
        negated = emit("negate", x, input_zp=0, output_zp=0)
        x = emit("select", below_zero, negated, x)
    return emit("intdiv", x, _magnitude(net, divisor, layout))


def _magnitude(net: LoweringContext, divisor: Handle, layout: Layout) -> Handle:
    """Return |divisor|, at least 1."""
    emit, bounds = net.builder.emit, net.builder.bounds
    magnitude = divisor if bounds[divisor].min >= 0 else emit("abs", divisor)
    if bounds[magnitude].min > 0:
        return magnitude
    return emit("maximum", magnitude, _scalar(net, 1, layout))


def _scalar(net: LoweringContext, number: int, layout: Layout) -> Handle:
    return net.constant(np.full([1] * len(layout), number, np.int32))
