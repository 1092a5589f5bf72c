"""Quotients and rests of whole numbers by whole numbers, whatever their signs.

A divisor of 0, for which ONNX gives no meaning, divides as 1 would.
"""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from cvm.errors import Unproven
from mrt.graph.canonical_values import constant_of, shape_of
from mrt.quantize.builder import Handle
from mrt.quantize.context import LoweringContext, common_layout
from mrt.quantize.rules.integers import INTEGER_RULES, computed, in_i32
from mrt.quantize.tensor import Layout, Tensor


def divide(net: LoweringContext, node: ir.Node) -> None:
    """Of integer types alone: truncated toward zero, as ONNX does."""
    if node.outputs[0].dtype == ir.DataType.FLOAT:
        raise Unproven("intdiv.fits", "a quotient of floats is no whole number")
    x, divisor, layout = _operands(net, node)
    _define(net, node, _truncated(net, x, divisor, layout), layout)


def modulus(net: LoweringContext, node: ir.Node) -> None:
    """x - trunc(x / |k|) * |k|, of x's sign; without fmod k once more where the signs of the rest and of k differ."""
    x, divisor, layout = _operands(net, node)
    emit, bounds = net.builder.emit, net.builder.bounds
    size = _size(net, divisor, layout)
    rest = emit("sub", x, emit("mul", emit("intdiv", x, size), size, shift=0))
    most, least = bounds[size].max - 1, min(0, bounds[x].min)
    rest = emit("clamp", rest, min=-most if least < 0 else 0, max=most)
    if not node.attributes["fmod"].as_int() and (least < 0 or bounds[divisor].min < 0):
        rest = _of_the_divisor_s_sign(net, rest, divisor, layout)
        low = 0 if bounds[divisor].min >= 0 else -most
        rest = emit("clamp", rest, min=low, max=0 if bounds[divisor].max <= 0 else most)
    _define(net, node, rest, layout)


def _of_the_divisor_s_sign(
    net: LoweringContext, rest: Handle, divisor: Handle, layout: Layout
) -> Handle:
    emit = net.builder.emit
    zero = _scalar(net, 0, layout)
    if net.builder.bounds[divisor].min >= 0:
        differs = emit("greater", zero, rest)
    else:
        signs = (emit("clamp", value, min=-1, max=1) for value in (rest, divisor))
        differs = emit("greater", zero, emit("mul", *signs, shift=0))
    return emit("select", differs, emit("add", rest, divisor), rest)


def _operands(net: LoweringContext, node: ir.Node) -> tuple[Handle, Handle, Layout]:
    layout = common_layout(computed(net, node), len(shape_of(node.outputs[0])))
    x, divisor = (in_i32(net, value, layout) for value in node.inputs)
    array = constant_of(node.inputs[1])
    if array is not None and array.size == 1:  # whatever its rank
        divisor = _scalar(net, int(array.item()), layout)
    return x, divisor, layout


def _truncated(
    net: LoweringContext, x: Handle, divisor: Handle, layout: Layout
) -> Handle:
    emit, bounds = net.builder.emit, net.builder.bounds[divisor]
    if bounds.min > 0 or bounds.max < 0:
        return emit("intdiv", x, divisor)
    if bounds.min < 0:
        below = emit("greater", _scalar(net, 0, layout), divisor)
        x = emit("select", below, emit("negate", x, input_zp=0, output_zp=0), x)
    return emit("intdiv", x, _size(net, divisor, layout))


def _size(net: LoweringContext, divisor: Handle, layout: Layout) -> Handle:
    """|k|, at least 1."""
    size = (
        divisor
        if net.builder.bounds[divisor].min >= 0
        else net.builder.emit("abs", divisor)
    )
    return (
        size
        if net.builder.bounds[size].min > 0
        else net.builder.emit("maximum", size, _scalar(net, 1, layout))
    )


def _scalar(net: LoweringContext, number: int, layout: Layout) -> Handle:
    return net.constant(np.full([1] * len(layout), number, np.int32))


def _define(net: LoweringContext, node: ir.Node, value: Handle, layout: Layout) -> None:
    net.define(node.outputs[0], Tensor(value, np.ones(1), 0, layout))


INTEGER_RULES |= {"Div": divide, "Mod": modulus}
