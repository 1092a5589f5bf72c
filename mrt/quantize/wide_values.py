"""Values in 30 bits: divisors, radicands, and what is squared for a function that is steep near 0."""

from __future__ import annotations

from collections.abc import Sequence

import onnx_ir as ir

from mrt.graph.canonical_values import name_of
from mrt.quantize.context import LoweringContext
from mrt.quantize.tensor import WIDE_BITS, Format, Tensor, wide_format


def in_30_bits(net: LoweringContext, value: ir.Value | None) -> Tensor:
    """Return the value straight from the accumulator, in 30 bits."""
    name = name_of(value)
    tensor = net.as_computed(value)
    range_, interval = net.ranges.of(name), net.interval(tensor)
    target = wide_format(range_, interval, net.options.scales)
    return net.requantize_to(tensor, target, name)


def as_wide(net: LoweringContext, value: ir.Value | None) -> Tensor:
    """Return the value with one scale and no clip, in all bits that it was computed with."""
    tensor = net.as_computed(value)
    if tensor.integral or (net.is_requantized(tensor) and tensor.per_tensor):
        return tensor
    proven = net.builder.bounds[tensor.value]
    fits = max(-proven.min, proven.max) <= 2**WIDE_BITS
    if fits and tensor.per_tensor and not tensor.clipped:
        return tensor
    return in_30_bits(net, value)


def shared_format(
    net: LoweringContext, tensors: Sequence[Tensor]
) -> Format | None:
    """Return the format of 30 bits in which tensors are as they are, if they share a scale, as parts of one input do."""
    most = 2**WIDE_BITS
    fit = all(_is_within(net, tensor, most) for tensor in tensors)
    scales = {float(scale) for tensor in tensors for scale in tensor.scale}
    if fit and len(scales) == 1:
        return Format("i32", scales.pop(), 0, -most, most)
    return None


def _is_within(net: LoweringContext, tensor: Tensor, most: int) -> bool:
    """Whether all steps from 0 are proven to be at most so many, in either direction."""
    proven, zero = net.builder.bounds[tensor.value], tensor.zero_point
    return bool(-most <= proven.min - zero and proven.max - zero <= most)
