"""Element by element, exactly: sums at a common finer scale, products, clips. Curved functions are tables (`table.py`)."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import onnx_ir as ir

from cvm.program import IntArray
from mrt.exact.fixed_point import (
    SMALLEST_SCALE,
    FloatArray,
    quantize_array,
    usable_scale,
)
from mrt.graph.canonical_values import clip_ends, constant_of, name_of, shape_of
from mrt.quantize.builder import Handle
from mrt.quantize.channel_centres import summed
from mrt.quantize.context import LoweringContext, common_layout, identity
from mrt.quantize.rules.registry import rule
from mrt.quantize.tensor import Format, Layout, Tensor

FINER_BITS = (
    14  # a sum is computed at up to this many bits below the scale of its 8-bit result
)
FEWEST_FINER_BITS = 4  # with fewer the operands are clamped instead
HALF_RANGE = 2**30  # operands of a sum stay within half of i32
I32 = (-(2**31), 2**31 - 1)


@rule("Relu")
def relu(net: LoweringContext, node: ir.Node) -> None:
    """A note on the tensor: whoever brings it to a format stops it at 0."""
    x = net.as_computed(node.inputs[0])
    net.define(node.outputs[0], replace(x, low=max(x.low, 0.0), high=max(x.high, 0.0)))


@rule("Clip")
def clip(net: LoweringContext, node: ir.Node) -> None:
    """As Relu, with both ends."""
    x = net.as_computed(node.inputs[0])
    low, high = clip_ends(node)
    ends = (min(max(end, low), high) for end in (x.low, x.high))
    net.define(node.outputs[0], replace(x, low=next(ends), high=next(ends)))


@rule("Neg")
def negate(net: LoweringContext, node: ir.Node) -> None:
    """negate in i32, where no value can be the least one."""
    net.define(node.outputs[0], _negated(net, net.as_computed(node.inputs[0])))


def _negated(net: LoweringContext, x: Tensor) -> Tensor:
    x = _without_least(net, net.widen(x))
    value = net.builder.emit("negate", x.value, input_zp=0, output_zp=0)
    return replace(x, value=value, low=-x.high, high=-x.low)


def _without_least(net: LoweringContext, x: Tensor) -> Tensor:
    if net.builder.bounds[x.value].min > I32[0]:
        return x
    return replace(
        x, value=net.builder.emit("clamp", x.value, min=I32[0] + 1, max=I32[1])
    )


@rule("Abs")
def absolute(net: LoweringContext, node: ir.Node) -> None:
    """abs in i32, where no value can be the least one."""
    x = net.as_computed(node.inputs[0])
    x = _without_least(
        net, net.widen(net.requantized(node.inputs[0]) if x.clipped else x)
    )
    net.define(node.outputs[0], replace(x, value=net.builder.emit("abs", x.value)))


@rule("Add", "Sub")
def add(net: LoweringContext, node: ir.Node) -> None:
    """Both operands in i32 at one scale, finer than the result's; the result is rounded once, by whoever reads it."""
    _combine(net, node, {"Add": "add", "Sub": "sub"}[node.op_type])


@rule("Max", "Min")
def extreme(net: LoweringContext, node: ir.Node) -> None:
    """As Add: at one common finer scale the greater integer stands for the greater real."""
    _combine(net, node, {"Max": "maximum", "Min": "minimum"}[node.op_type])


def _combine(net: LoweringContext, node: ir.Node, instruction: str) -> None:
    computed = [
        None if constant_of(value) is not None else net.accumulator(value)
        for value in node.inputs
    ]
    shape = shape_of(node.outputs[0])
    layout = common_layout(
        (tensor for tensor in computed if tensor is not None), len(shape)
    )
    scale = _fine_scale(net, node, computed)
    operands: list[Handle] = []
    for value, tensor in zip(node.inputs, computed, strict=True):
        if tensor is None:
            array = constant_of(value)
            assert array is not None
            integers = quantize_array(array, scale, -HALF_RANGE, HALF_RANGE - 1).astype(
                np.int32
            )
            operands.append(net.constant(in_layout(integers, layout)))
        else:
            operands.append(
                _at_scale(net, operand_in_layout(net, value, tensor, layout), scale)
            )
    result = net.builder.emit(instruction, *operands)
    net.define(
        node.outputs[0],
        Tensor(result, np.array([scale]), 0, layout, centres=summed(node, *computed)),
    )


def _fine_scale(
    net: LoweringContext, node: ir.Node, computed: list[Tensor | None]
) -> float:
    """The finest scale at which the sum of the operands' proven magnitudes still fits."""
    reach = 0.0
    for value, tensor in zip(node.inputs, computed, strict=True):
        array = constant_of(value)
        reach += (
            float(np.abs(array).max()) if tensor is None and array is not None else 0.0
        )
        reach += max(map(abs, net.interval(tensor))) if tensor is not None else 0.0
    return fine_scale(net, name_of(node.outputs[0]), reach)


def fine_scale(net: LoweringContext, name: str, reach: float) -> float:
    """A scale far below that of the value's 8-bit form, at which everything up to `reach` fits half of i32."""
    seen = net.table.ranges[name]
    coarse = usable_scale(max(abs(seen.min), abs(seen.max)) / 127, net.options.scales)
    for bits in range(FINER_BITS, FEWEST_FINER_BITS, -1):
        if reach / math.ldexp(coarse, -bits) < HALF_RANGE:
            return math.ldexp(coarse, -bits)
    return math.ldexp(coarse, -FEWEST_FINER_BITS)


def _at_scale(net: LoweringContext, tensor: Tensor, scale: float) -> Handle:
    """An operand of a sum: i32 at the common scale, held to half the type."""
    return net.requantize_to(
        tensor, Format("i32", scale, 0, -HALF_RANGE, HALF_RANGE - 1)
    ).value


def operand_in_layout(
    net: LoweringContext, value: ir.Value | None, tensor: Tensor, layout: Layout
) -> Tensor:
    """A computed operand in the common layout, with leading axes of size 1 where its rank is lower."""
    rank = len(layout)
    if len(tensor.layout) == rank and (
        tensor.per_tensor or tensor.layout[-1] == layout[-1]
    ):
        return net.to_layout(tensor, layout)
    tensor = net.to_float_layout(
        tensor if tensor.per_tensor else net.requantized(value)
    )
    missing = rank - len(tensor.layout)
    shape = (1,) * missing + net.shape(tensor)
    return net.to_layout(
        replace(tensor, value=net.reshaped(tensor.value, shape), layout=identity(rank)),
        layout,
    )


def in_layout(array: IntArray, layout: Layout) -> IntArray:
    """A constant in the layout of the tensor it meets."""
    return array.reshape((1,) * (len(layout) - array.ndim) + array.shape).transpose(
        layout
    )


@rule("Mul")
def multiply(net: LoweringContext, node: ir.Node) -> None:
    """By a constant: a change of scale where that is possible. Otherwise mul of two 16-bit operands with zero point 0."""
    constants = [constant_of(value) for value in node.inputs]
    if constants[0] is not None:
        return _multiply_by_constant(net, node, node.inputs[1], constants[0])
    if constants[1] is not None:
        return _multiply_by_constant(net, node, node.inputs[0], constants[1])
    return _multiply_computed(net, node)


def _multiply_by_constant(
    net: LoweringContext, node: ir.Node, value: ir.Value | None, factor: FloatArray
) -> None:
    x = net.as_computed(value)
    if net.options.scales == "real" and shape_of(node.outputs[0]) == shape_of(value):
        by_channel = in_layout(factor, x.layout)
        if by_channel.shape[-1:] in ((), (by_channel.size,)) and _leaves_a_scale(
            x, by_channel
        ):
            return net.define(node.outputs[0], _scaled(net, value, by_channel.ravel()))
    scale = usable_scale(float(np.abs(factor).max()) / 32767, net.options.scales)
    layout = common_layout([x], len(shape_of(node.outputs[0])))
    left = _factor(net, value, layout)
    integers = quantize_array(factor, scale, -32767, 32767).astype(np.int16)
    product = net.builder.emit(
        "mul", left.value, net.constant(in_layout(integers, layout)), shift=0
    )
    return net.define(node.outputs[0], Tensor(product, left.scale * scale, 0, layout))


def _leaves_a_scale(x: Tensor, factor: FloatArray) -> bool:
    """Whether factors of one sign can go into the scale: not all of it may become 0."""
    return (
        bool(np.all(factor >= 0) or np.all(factor <= 0))
        and (x.scale * np.abs(factor)).max() > SMALLEST_SCALE
    )


def _scaled(net: LoweringContext, value: ir.Value | None, factor: FloatArray) -> Tensor:
    """x * factor without an instruction: the integers stay, the scale changes. One factor, or one per channel, of one sign."""
    x = net.as_computed(value)
    if factor.size > 1 and {x.low, x.high} - {
        0.0,
        math.inf,
        -math.inf,
    }:  # the clip would differ by channel
        x = net.requantized(value)
    if np.any(factor < 0):
        x, factor = _negated(net, x), -factor
    stretch = (
        float(factor[0]) if factor.size == 1 else 1.0
    )  # 0 and infinity, the ends that are left, stay the same
    return replace(
        x, scale=x.scale * factor, low=x.low * stretch, high=x.high * stretch
    )


def _multiply_computed(net: LoweringContext, node: ir.Node) -> None:
    layout = common_layout(
        [net.as_computed(value) for value in node.inputs],
        len(shape_of(node.outputs[0])),
    )
    left, right = (_factor(net, value, layout) for value in node.inputs)
    product = net.builder.emit("mul", left.value, right.value, shift=0)
    net.define(node.outputs[0], Tensor(product, left.scale * right.scale, 0, layout))


def _factor(net: LoweringContext, value: ir.Value | None, layout: Layout) -> Tensor:
    """An operand of mul: i16, zero point 0 (mul has none), at the value's own precision."""
    return net.widen(
        operand_in_layout(net, value, net.requantized(value), layout), "i16"
    )
