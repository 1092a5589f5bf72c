"""Rules of element-wise arithmetic: sums at a common finer scale, products, clips.

Curved functions of one value are lookup tables (`curves/`).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np
import onnx_ir as ir

from cvm.program import DTYPE_RANGES, IntArray
from mrt.exact.fixed_point import (
    SMALLEST_SCALE,
    FloatArray,
    quantize_array,
    usable_scale,
)
from mrt.graph.canonical_values import (
    clip_ends,
    constant_of,
    is_constant,
    name_of,
    shape_of,
)
from mrt.graph.values import TABLE_RANK, producer
from mrt.quantize.builder import Handle
from mrt.quantize.channel_centres import is_sum, summed
from mrt.quantize.compared_inputs import scales_columns
from mrt.quantize.context import LoweringContext
from mrt.quantize.large_constants import emit_large
from mrt.quantize.rules.octave_products import code_times
from mrt.quantize.rules.octave_sums import (
    codes_at_one_scale,
    sum_of_two_codes,
)
from mrt.quantize.rules.registry import rule
from mrt.quantize.shortcuts import shortcut_sum
from mrt.quantize.tensor import (
    WIDE_BITS,
    Format,
    Layout,
    Tensor,
    common_layout,
    identity,
    in_layout,
)
from mrt.quantize.uneven_outputs import are_uneven
from mrt.quantize.wide_values import as_wide

USUAL_GUARD_BITS = 14
"""The most bits by which the scale of a sum is finer than that of its 8-bit result."""

MOST_GUARD_BITS = 22
"""The same where the file gives formats, so that its own sums are met almost always."""

FEWEST_GUARD_BITS = 4
"""The fewest such bits; where i32 has no room for them, the operands are clamped instead."""

HALF_RANGE = 2**30
"""Operands of a sum stay within half of i32."""

I32 = DTYPE_RANGES["i32"]


@rule("Relu")
def relu(net: LoweringContext, node: ir.Node) -> None:
    """Record the lower bound in the tensor, without an instruction: requantizing applies it."""
    x = net.as_computed(node.inputs[0])
    clipped = replace(x, low=max(x.low, 0.0), high=max(x.high, 0.0))
    net.define(node.outputs[0], clipped)


@rule("Clip")
def clip(net: LoweringContext, node: ir.Node) -> None:
    """Record both bounds in the tensor, as for Relu."""
    x = net.as_computed(node.inputs[0])
    low, high = clip_ends(node)
    new_low = min(max(x.low, low), high)
    new_high = min(max(x.high, low), high)
    net.define(node.outputs[0], replace(x, low=new_low, high=new_high))


@rule("Neg")
def negate(net: LoweringContext, node: ir.Node) -> None:
    """Write a negate in i32."""
    net.define(node.outputs[0], _negated(net, net.as_computed(node.inputs[0])))


def _negated(net: LoweringContext, x: Tensor) -> Tensor:
    x = _without_least(net, net.widen(x))
    value = net.builder.emit("negate", x.value, input_zp=0, output_zp=0)
    return replace(x, value=value, low=-x.high, high=-x.low)


def _without_least(net: LoweringContext, x: Tensor) -> Tensor:
    """Clamp x to exclude the least integer of i32, whose negative does not fit."""
    if net.builder.bounds[x.value].min > I32[0]:
        return x
    value = net.builder.emit("clamp", x.value, min=I32[0] + 1, max=I32[1])
    return replace(x, value=value)


@rule("Abs")
def absolute(net: LoweringContext, node: ir.Node) -> None:
    """Write an abs in i32."""
    x = net.as_computed(node.inputs[0])
    if x.clipped:
        x = net.requantized(node.inputs[0])
    x = _without_least(net, net.widen(x))
    net.define(
        node.outputs[0], replace(x, value=net.builder.emit("abs", x.value))
    )


_INSTRUCTIONS = {"Add": "add", "Sub": "sub", "Max": "maximum", "Min": "minimum"}


@rule("Add", "Sub", "Max", "Min")
def combine(net: LoweringContext, node: ir.Node) -> None:
    """Combine both operands in i32 at one scale, finer than the result's.

    The result is rounded once, when a reader requantizes it. At one scale the greater
    integer represents the greater real, so Max and Min work the same way. Codes are added
    as codes.
    """
    codes = net.codes_for(node, node.inputs)
    if codes:
        return _combine_codes(net, node, codes)
    computed = [_computed_or_none(net, value) for value in node.inputs]
    tensors = [tensor for tensor in computed if tensor is not None]
    shortcut = shortcut_sum(net, node, tensors)
    if shortcut is not None:
        return net.define(node.outputs[0], shortcut)
    layout = common_layout(tensors, len(shape_of(node.outputs[0])))
    target = _format_of_sum(net, node, computed)
    operands: list[Handle] = []
    for value, tensor in zip(node.inputs, computed, strict=True):
        if tensor is None:
            integers = _integers_at_scale(value, target.scale, layout)
            name = name_of(node.outputs[0])
            operands.append(emit_large(net, integers, target.scale, name))
        else:
            tensor = operand_in_layout(net, value, tensor, layout)
            operands.append(net.requantize_to(tensor, target).value)
    result = net.builder.emit(_INSTRUCTIONS[node.op_type], *operands)
    scale, centres = np.array([target.scale]), summed(node, *computed)
    net.define(
        node.outputs[0], Tensor(result, scale, 0, layout, centres=centres)
    )


def _format_of_sum(
    net: LoweringContext, node: ir.Node, computed: Sequence[Tensor | None]
) -> Format:
    """Return the format of both operands, in i32: of `sum_bits` if the options choose these, else as fine as half of i32 holds."""
    bits = net.options.sum_bits
    if node.op_type == "Add" and is_sum(node) and bits is not None:
        names = [name_of(value) for value in (*node.inputs, *node.outputs)]
        return narrow_format(net, names, bits)
    greatest = 0.0
    for value, tensor in zip(node.inputs, computed, strict=True):
        greatest += _magnitude(net, value, tensor)
    tensors = [tensor for tensor in computed if tensor is not None]
    scale = _scale_of_sum(net, node, tensors, greatest)
    return Format("i32", scale, 0, -HALF_RANGE, HALF_RANGE - 1)


def _combine_codes(
    net: LoweringContext, node: ir.Node, codes: Sequence[Tensor]
) -> None:
    layout = common_layout(codes, len(shape_of(node.outputs[0])))
    left, right = (
        operand_in_layout(net, value, code, layout)
        for value, code in zip(node.inputs, codes, strict=True)
    )
    greatest = net.greatest_expected(node.outputs[0])
    if node.op_type == "Add":
        total = sum_of_two_codes(net, left, right, greatest)
        return net.define(node.outputs[0], total)
    codes = codes_at_one_scale(net, [left, right], greatest)
    wide = [net.builder.emit("cast", it.value, dtype="i32") for it in codes]
    extreme = net.builder.emit(_INSTRUCTIONS[node.op_type], *wide)
    value = net.builder.emit("cast", extreme, dtype="i16")
    net.define(node.outputs[0], replace(codes[0], value=value))


def _scale_of_sum(
    net: LoweringContext,
    node: ir.Node,
    tensors: Sequence[Tensor],
    greatest: float,
) -> float:
    """Return the scale of a sum of reals up to `greatest`; columns that differ in size need the finest."""
    name, x = name_of(node.outputs[0]), node.inputs[0]
    is_row = len(shape_of(node.outputs[0])) == TABLE_RANK
    if is_row and any(are_uneven(net, tensor) for tensor in tensors):
        return scale_with_guard_bits(net, name, greatest, MOST_GUARD_BITS)
    of_table = x is not None and name_of(x) in net.plan.wide
    constant = constant_of(node.inputs[-1])
    if of_table and constant is not None and scales_columns(node, constant):
        return scale_with_guard_bits(net, name, greatest, MOST_GUARD_BITS)
    return scale_with_guard_bits(net, name, greatest)


def _computed_or_none(
    net: LoweringContext, value: ir.Value | None
) -> Tensor | None:
    """Return the accumulator of a computed operand; None for a constant."""
    return net.accumulator(value) if not is_constant(value) else None


def _magnitude(
    net: LoweringContext, value: ir.Value | None, tensor: Tensor | None
) -> float:
    """Return the greatest absolute value of an operand: proven, or of a constant."""
    if tensor is not None:
        low, high = net.interval(tensor)
        return max(abs(low), abs(high))
    array = constant_of(value)
    assert array is not None
    return float(np.abs(array).max())


def _integers_at_scale(
    value: ir.Value | None, scale: float, layout: Layout
) -> IntArray:
    """Return what stands for a constant."""
    array = constant_of(value)
    assert array is not None
    integers = quantize_array(array, scale, -HALF_RANGE, HALF_RANGE - 1)
    return in_layout(integers, layout)


def narrow_format(
    net: LoweringContext, names: Iterable[str], bits: int
) -> Format:
    """Return a format of few bits in i32 that reaches to all that was measured of some values.

    Addends in it keep a sum narrow, which matters where its integers are encrypted.
    """
    greatest = max(net.ranges.of(name).magnitude for name in names)
    most = 2 ** (bits - 1) - 1
    scale = usable_scale(greatest / most, net.options.scales)
    return Format("i32", scale, 0, -most, most)


def scale_with_guard_bits(
    net: LoweringContext,
    name: str,
    greatest: float,
    most: int = USUAL_GUARD_BITS,
) -> float:
    """Return the finest scale for a sum at which reals up to `greatest` fit half of i32.

    It is 2^-`most` to 2^-4 of the scale of the value's 8-bit form, or finer where the file
    gives formats.
    """
    measured = net.ranges.of(name).magnitude
    coarse = usable_scale(measured / 127, net.options.scales)
    most = MOST_GUARD_BITS if net.file_formats else most
    for bits in range(most, FEWEST_GUARD_BITS, -1):
        scale = math.ldexp(coarse, -bits)
        if greatest / scale < HALF_RANGE:
            return scale
    return math.ldexp(coarse, -FEWEST_GUARD_BITS)


def operand_in_layout(
    net: LoweringContext, value: ir.Value | None, tensor: Tensor, layout: Layout
) -> Tensor:
    """Return a computed operand in a layout, with leading axes of size 1 where its rank is lower.

    A tensor whose channels would not stay on the last axis is requantized to one scale.
    """
    rank = len(layout)
    keeps_channels = tensor.per_tensor or tensor.layout[-1] == layout[-1]
    if len(tensor.layout) == rank and keeps_channels:
        return net.to_layout(tensor, layout)
    tensor = tensor if tensor.per_tensor else net.requantized(value)
    tensor = net.to_float_layout(tensor)
    missing = rank - len(tensor.layout)
    shape = (1,) * missing + net.shape(tensor)
    value_of_rank = net.reshaped(tensor.value, shape)
    of_rank = replace(tensor, value=value_of_rank, layout=identity(rank))
    return net.to_layout(of_rank, layout)


@rule("Mul")
def multiply(net: LoweringContext, node: ir.Node) -> None:
    """Write a product.

    A constant factor changes the scale where that is possible. Any other product is a
    mul of two i16 operands.
    """
    first, second = (constant_of(value) for value in node.inputs)
    if first is not None:
        _multiply_by_constant(net, node, node.inputs[1], first)
    elif second is not None:
        _multiply_by_constant(net, node, node.inputs[0], second)
    else:
        _multiply_computed(net, node)


def _multiply_by_constant(
    net: LoweringContext,
    node: ir.Node,
    value: ir.Value | None,
    factor: FloatArray,
) -> None:
    codes = net.codes_for(node, [value])
    if codes:
        layout = common_layout(codes, len(shape_of(node.outputs[0])))
        operand = operand_in_layout(net, value, codes[0], layout)
        greatest = net.greatest_expected(node.outputs[0])
        net.define(node.outputs[0], code_times(net, operand, factor, greatest))
        return
    x = net.as_computed(value)
    is_wide = name_of(node.outputs[0]) in net.plan.wide
    if shape_of(node.outputs[0]) == shape_of(value):
        of_table = scales_columns(node, factor) and _is_of_table(net, value)
        if of_table:
            x = _with_channels_last(net, x, factor)
        by_channel = in_layout(factor, x.layout)
        is_one_per_channel = _is_one_per_channel(by_channel)
        factors = by_channel.ravel()
        if is_one_per_channel and _leaves_a_scale(net, x, factors):
            return net.define(node.outputs[0], _scaled(net, value, x, factors))
        if of_table and is_one_per_channel and not (is_wide or x.clipped):
            return net.define(node.outputs[0], _wide_columns(net, x, factors))
    layout = common_layout([x], len(shape_of(node.outputs[0])))
    if is_wide:
        net.define(node.outputs[0], _wide_product(net, value, factor, layout))
        return
    scale = usable_scale(
        float(np.abs(factor).max()) / 32767, net.options.scales
    )
    left = _factor(net, value, layout)
    integers = quantize_array(factor, scale, -32767, 32767).astype(np.int16)
    right = net.constant(in_layout(integers, layout))
    product = net.builder.emit("mul", left.value, right, shift=0)
    net.define(node.outputs[0], Tensor(product, left.scale * scale, 0, layout))


def _wide_product(
    net: LoweringContext,
    value: ir.Value | None,
    factor: FloatArray,
    layout: Layout,
) -> Tensor:
    """Multiply a wide value by constants of 30 bits; the product has the bits of the value."""
    limit = 2**WIDE_BITS
    scale = usable_scale(
        float(np.abs(factor).max()) / limit, net.options.scales
    )
    x = net.widen(operand_in_layout(net, value, as_wide(net, value), layout))
    integers = quantize_array(factor, scale, -limit, limit).astype(np.int32)
    constant = net.constant(in_layout(integers, layout))
    product = net.builder.emit("mul", x.value, constant, shift=WIDE_BITS)
    return Tensor(product, x.scale * (scale * limit), 0, layout)


def _is_one_per_channel(factor: FloatArray) -> bool:
    """Whether an array, in a layout, has one entry or one per index of the last axis."""
    return factor.shape[-1:] in ((), (factor.size,))


def _leaves_a_scale(
    net: LoweringContext, x: Tensor, factor: FloatArray
) -> bool:
    """Whether factors can go into the scale: any number may be one, all have one sign, and at least one scale is not tiny."""
    one_sign = bool(np.all(factor >= 0) or np.all(factor <= 0))
    is_tiny = (x.scale * np.abs(factor)).max() <= SMALLEST_SCALE
    return net.options.scales == "real" and one_sign and not is_tiny


def _is_of_table(net: LoweringContext, value: ir.Value | None) -> bool:
    """Whether a value is wide, or such a value with a number added to each column."""
    added = producer(value, "Add")
    names = {name_of(it) for it in (added.inputs if added else ())}
    return bool(net.plan.wide & (names | {name_of(value)}))


def _with_channels_last(
    net: LoweringContext, x: Tensor, factor: FloatArray
) -> Tensor:
    """Return a wide tensor with the axis last that a factor has numbers for, so that they go into its scale."""
    if factor.size == 1:
        return x
    missing = (1,) * (len(x.layout) - factor.ndim)
    sizes = missing + factor.shape
    channels = int(np.argmax(sizes))
    others = [axis for axis in x.layout if axis != channels]
    return net.to_layout(x, (*others, channels))


def _scaled(
    net: LoweringContext,
    value: ir.Value | None,
    x: Tensor,
    factor: FloatArray,
) -> Tensor:
    """Multiply x by constants: its scale changes and its integers stay, but for a negative factor.

    There is one factor, or one per channel, all of one sign. A negative one negates the
    integers. A bound of a clip other than 0 or infinity would differ by channel, so
    such a clip is applied first.
    """
    same_for_all_channels = {0.0, math.inf, -math.inf}
    if factor.size > 1 and {x.low, x.high} - same_for_all_channels:
        x = net.requantized(value)
    if np.any(factor < 0):
        x = _negated(net, x)
        factor = -factor
    stretch = float(factor[0]) if factor.size == 1 else 1.0
    scale = x.scale * factor
    return replace(x, scale=scale, low=x.low * stretch, high=x.high * stretch)


def _wide_columns(
    net: LoweringContext, x: Tensor, factor: FloatArray
) -> Tensor:
    """Multiply each channel of a wide tensor by its factor: what a scale can be goes into the scale, the rest to the integers.

    Of real scales only the sign is left, of powers of two a number up to 1.
    """
    scales = net.options.scales
    shift = 0 if scales == "real" else WIDE_BITS
    parts = np.array([usable_scale(it, scales) for it in np.abs(factor)])
    integers = quantize_array(factor / parts, 2.0**-shift, *I32)
    x = _without_least(net, net.widen(x))
    axes = identity(len(x.layout))
    constant = net.constant(in_layout(integers.astype(np.int32), axes))
    product = net.builder.emit("mul", x.value, constant, shift=shift)
    return replace(x, value=product, scale=x.scale * parts)


def _multiply_computed(net: LoweringContext, node: ir.Node) -> None:
    tensors = [net.as_computed(value) for value in node.inputs]
    layout = common_layout(tensors, len(shape_of(node.outputs[0])))
    left, right = (_factor(net, value, layout) for value in node.inputs)
    product = net.builder.emit("mul", left.value, right.value, shift=0)
    net.define(
        node.outputs[0], Tensor(product, left.scale * right.scale, 0, layout)
    )


def _factor(
    net: LoweringContext, value: ir.Value | None, layout: Layout
) -> Tensor:
    """Return an operand of mul, at the value's own precision: i16 with zero point 0."""
    x = operand_in_layout(net, value, net.requantized(value), layout)
    return net.widen(x, "i16")
