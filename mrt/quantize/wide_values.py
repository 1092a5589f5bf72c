"""Values in 30 bits: divisors, radicands, and what is squared for a function that is steep near 0."""

from __future__ import annotations

from dataclasses import replace

import onnx_ir as ir

from mrt.exact.fixed_point import MAX_RATIO, usable_scale
from mrt.graph.canonical_values import name_of
from mrt.quantize.context import LoweringContext
from mrt.quantize.tensor import FINE_BITS, Tensor, wide_format


def in_30_bits(net: LoweringContext, value: ir.Value | None) -> Tensor:
    """Return the value straight from the accumulator, in 30 bits, or fewer where its steps are too coarse for a rescale."""
    name = name_of(value)
    tensor = net.as_computed(value)
    range_, interval = net.ranges.of(name), net.interval(tensor)
    target = wide_format(range_, interval, net.options.scales)
    # A count below 4 has steps of 1: in 30 bits they would be finer than a rescale can make them.
    finest = float(tensor.scale.max()) / MAX_RATIO
    if target.scale < finest:
        scale = usable_scale(finest, net.options.scales)
        target = replace(target, scale=scale)
    return net.requantize_to(tensor, target, name)


def as_wide(net: LoweringContext, value: ir.Value | None) -> Tensor:
    """Return the value with one scale and no clip, in all bits that it was computed with."""
    tensor = net.as_computed(value)
    if tensor.integral or (net.is_requantized(tensor) and tensor.per_tensor):
        return tensor
    proven = net.builder.bounds[tensor.value]
    fits = max(-proven.min, proven.max) <= 2**FINE_BITS
    if fits and tensor.per_tensor and not tensor.clipped:
        return tensor
    return in_30_bits(net, value)
