"""Concat: the parts in one format, or, where channels have scales of their own, each channel in its own."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

import numpy as np
import onnx_ir as ir

from cvm.program import DTYPES
from mrt.exact.fixed_point import FloatArray
from mrt.graph.canonical_values import constant_of, name_of, shape_of
from mrt.quantize.builder import Handle
from mrt.quantize.context import LoweringContext, common_layout, quantized
from mrt.quantize.rules.integers import computed, integer_operand, is_integer
from mrt.quantize.rules.registry import rule
from mrt.quantize.tensor import Format, Layout, Tensor

CHANNELS = 1  # the axis of an image


def joins_accumulators(node: ir.Node) -> bool:
    """Whether the parts are channels of convolutions that nobody else reads: then each is rounded once, for the whole."""
    return node.attributes["axis"].as_int() == CHANNELS and all(
        map(_is_accumulator, node.inputs)
    )


def _is_accumulator(value: ir.Value | None) -> bool:
    """Whether this is a convolution's output, perhaps behind Relu or Clip, with no reader but one."""
    node = None if value is None else value.producer()
    if node is None or len(node.outputs[0].uses()) != 1:
        return False
    return node.op_type == "Conv" or (
        node.op_type in ("Relu", "Clip") and _is_accumulator(node.inputs[0])
    )


@rule("Concat")
def concat(net: LoweringContext, node: ir.Node) -> None:
    """The parts are brought to their scales straight from their accumulators where nobody else reads them."""
    if all(is_integer(net, value) for value in node.inputs):
        return _concat_integer(net, node)
    name, parts = name_of(node.outputs[0]), [_part(net, value) for value in node.inputs]
    ends = [
        net.interval(part) if isinstance(part, Tensor) else (part.min(), part.max())
        for part in parts
    ]
    target = net.format(
        node.outputs[0],
        interval=(min(low for low, _ in ends), max(high for _, high in ends)),
    )
    factors = net.channel_factors(name, target)
    images = [
        part
        for part in parts
        if isinstance(part, Tensor) and net.can_requantize_by_channel(part, target)
    ]
    if factors is not None and len(images) == len(parts) and joins_accumulators(node):
        brought = _by_channel(net, images, target, factors)
        scale = np.concatenate([part.scale for part in brought])
        return _define(
            net, node, [part.value for part in brought], images[0].layout, target, scale
        )
    layout = common_layout(
        (part for part in parts if isinstance(part, Tensor)),
        len(shape_of(node.outputs[0])),
    )
    return _define(
        net,
        node,
        [_brought(net, part, target, layout) for part in parts],
        layout,
        target,
    )


def _part(net: LoweringContext, value: ir.Value | None) -> Tensor | FloatArray:
    array = constant_of(value)
    return net.accumulator(value) if array is None else array


def _by_channel(
    net: LoweringContext, parts: list[Tensor], target: Format, factors: Sequence[float]
) -> list[Tensor]:
    """Images, each channel in the format times its factor among those of all parts."""
    sizes = [net.shape(part)[-1] for part in parts]
    return [
        net.requantize_by_channel(part, target, factors[end - size : end])
        for part, size, end in zip(parts, sizes, accumulate(sizes), strict=True)
    ]


def _brought(
    net: LoweringContext, part: Tensor | FloatArray, target: Format, layout: Layout
) -> Handle:
    """A part in a format and a layout."""
    if isinstance(part, Tensor):
        return net.to_layout(net.requantize_to(part, target), layout).value
    return net.constant(
        quantized(part, target).astype(DTYPES[target.dtype]).transpose(layout)
    )


def _define(
    net: LoweringContext,
    node: ir.Node,
    brought: list[Handle],
    layout: Layout,
    target: Format,
    scale: FloatArray | None = None,
) -> None:
    value = net.builder.emit(
        "concat", *brought, axis=layout.index(node.attributes["axis"].as_int())
    )
    scales = np.array([target.scale]) if scale is None else scale
    net.define(
        node.outputs[0],
        Tensor(value, scales, target.zero_point, layout, absorbed=scale is not None),
    )


def _concat_integer(net: LoweringContext, node: ir.Node) -> None:
    """Whole numbers are joined as they are, in i32 unless all have one dtype."""
    layout = common_layout(computed(net, node), len(shape_of(node.outputs[0])))
    parts = [integer_operand(net, value, layout) for value in node.inputs]
    dtypes = {net.dtype(part) for part in parts}
    joined = parts if len(dtypes) == 1 else [net.cast_to(part, "i32") for part in parts]
    axis = layout.index(node.attributes["axis"].as_int())
    value = net.builder.emit("concat", *(part.value for part in joined), axis=axis)
    net.define(node.outputs[0], Tensor(value, np.ones(1), 0, layout))
