"""The rule of Concat: one format for all operands or, where channels have scales, by channel."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import onnx_ir as ir

from cvm.program import DTYPES
from mrt.exact.fixed_point import FloatArray
from mrt.graph.canonical_values import constant_of, name_of, shape_of
from mrt.quantize.builder import Handle
from mrt.quantize.context import LoweringContext
from mrt.quantize.curves.gate import is_gate
from mrt.quantize.rules.integers import (
    define_integral,
    integer_operand,
    is_integer,
    result_layout,
)
from mrt.quantize.rules.octave_sums import codes_at_one_scale
from mrt.quantize.rules.registry import rule
from mrt.quantize.tensor import (
    Format,
    Interval,
    Layout,
    Tensor,
    common_layout,
    quantized,
    wide_format,
)
from mrt.quantize.wide_values import as_wide, shared_format

CHANNELS = 1  # the axis of an image in the float model


def joins_accumulators(node: ir.Node) -> bool:
    """Whether every operand is a convolution's output, or a gate of one, with no other reader.

    Each is then rounded once, from its accumulator to the format of the result.
    """
    if node.attributes["axis"].as_int() != CHANNELS:
        return False
    return all(_is_accumulator(value) for value in node.inputs)


def _is_accumulator(value: ir.Value | None) -> bool:
    """Whether a value with one reader is a convolution's output, or a Relu, Clip or gate of one."""
    while value is not None and len(value.uses()) == 1:
        if is_gate(value):
            return True
        node = value.producer()
        if node is None or node.op_type not in ("Relu", "Clip"):
            return node is not None and node.op_type == "Conv"
        value = node.inputs[0]
    return False


@rule("Concat")
def concat(net: LoweringContext, node: ir.Node) -> None:
    """Requantize operands with no other reader straight from their accumulators, and join them."""
    if all(is_integer(net, value) for value in node.inputs):
        _concat_integers(net, node)
        return
    codes = net.codes_for(node, node.inputs)
    if codes:
        _concat_codes(net, node, codes)
        return
    is_wide = name_of(node.outputs[0]) in net.plan.wide
    operands = [_operand(net, value, wide=is_wide) for value in node.inputs]
    interval = _common_interval(net, operands)
    if is_wide:
        target = _wide_format(net, node, operands, interval)
    else:
        target = net.format(node.outputs[0], interval=interval)
    if joins_accumulators(node) and _concat_by_channel(
        net, node, operands, target
    ):
        return
    tensors = [operand for operand in operands if isinstance(operand, Tensor)]
    layout = common_layout(tensors, len(shape_of(node.outputs[0])))
    handles = [
        _requantized(net, operand, target, layout) for operand in operands
    ]
    value = _joined(net, node, handles, layout)
    scale = np.array([target.scale])
    net.define(node.outputs[0], Tensor(value, scale, target.zero_point, layout))


def _operand(
    net: LoweringContext, value: ir.Value | None, *, wide: bool
) -> Tensor | FloatArray:
    """Return a constant, or a computed operand in all its bits if it is `wide`, whoever else reads it."""
    array = constant_of(value)
    if array is not None:
        return array
    return as_wide(net, value) if wide else net.accumulator(value)


def _common_interval(
    net: LoweringContext, operands: Sequence[Tensor | FloatArray]
) -> Interval:
    """Return the hull of the intervals of all operands."""
    lows: list[float] = []
    highs: list[float] = []
    for operand in operands:
        if isinstance(operand, Tensor):
            low, high = net.interval(operand)
        else:
            low, high = operand.min(), operand.max()
        lows.append(low)
        highs.append(high)
    return min(lows), max(highs)


def _wide_format(
    net: LoweringContext,
    node: ir.Node,
    operands: Sequence[Tensor | FloatArray],
    interval: Interval,
) -> Format:
    """Return the format of a wide result: that of the operands if they share one, as parts of one input do."""
    tensors = [operand for operand in operands if isinstance(operand, Tensor)]
    shared = shared_format(net, tensors)
    if shared is not None and len(tensors) == len(operands):
        return shared
    range_ = net.ranges.of(name_of(node.outputs[0]))
    return wide_format(range_, interval, net.options.scales)


def _concat_by_channel(
    net: LoweringContext,
    node: ir.Node,
    operands: Sequence[Tensor | FloatArray],
    target: Format,
) -> bool:
    """Join images whose channels have scales of their own; return False if that is impossible.

    A channel's scale is the format's times the channel's factor.
    """
    factors = net.channel_factors(name_of(node.outputs[0]), target)
    if factors is None:
        return False
    images: list[Tensor] = []
    for operand in operands:
        if not isinstance(operand, Tensor):
            return False
        if not net.can_requantize_by_channel(operand, target):
            return False
        images.append(operand)
    requantized: list[Tensor] = []
    start = 0
    for image in images:
        stop = start + net.shape(image)[-1]
        own_factors = factors[start:stop]
        requantized.append(
            net.requantize_by_channel(image, target, own_factors)
        )
        start = stop
    layout = images[0].layout
    value = _joined(net, node, [image.value for image in requantized], layout)
    scale = np.concatenate([image.scale for image in requantized])
    result = Tensor(value, scale, target.zero_point, layout, absorbed=True)
    net.define(node.outputs[0], result)
    return True


def _requantized(
    net: LoweringContext,
    operand: Tensor | FloatArray,
    target: Format,
    layout: Layout,
) -> Handle:
    """Return an operand in a format and a layout."""
    if isinstance(operand, Tensor):
        return net.to_layout(net.requantize_to(operand, target), layout).value
    integers = quantized(operand, target).astype(DTYPES[target.dtype])
    return net.constant(integers.transpose(layout))


def _joined(
    net: LoweringContext,
    node: ir.Node,
    handles: Sequence[Handle],
    layout: Layout,
) -> Handle:
    axis = layout.index(node.attributes["axis"].as_int())
    return net.builder.emit("concat", *handles, axis=axis)


def _concat_codes(
    net: LoweringContext, node: ir.Node, codes: Sequence[Tensor]
) -> None:
    layout = common_layout(codes, len(shape_of(node.outputs[0])))
    alike = codes_at_one_scale(
        net,
        [net.to_layout(code, layout) for code in codes],
        net.greatest_expected(node.outputs[0]),
    )
    value = _joined(net, node, [code.value for code in alike], layout)
    net.define(node.outputs[0], replace(alike[0], value=value))


def _concat_integers(net: LoweringContext, node: ir.Node) -> None:
    """Join integral operands as they are, in i32 unless all have one dtype."""
    layout = result_layout(net, node)
    operands = [integer_operand(net, value, layout) for value in node.inputs]
    dtypes = {net.dtype(operand) for operand in operands}
    if len(dtypes) > 1:
        operands = [net.cast_to(operand, "i32") for operand in operands]
    value = _joined(net, node, [operand.value for operand in operands], layout)
    define_integral(net, node.outputs[0], value, layout)
