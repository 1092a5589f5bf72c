"""Values in 30 bits: divisors, radicands, and what is squared for a function that is steep near 0."""

from __future__ import annotations

import math

import onnx_ir as ir

from mrt.exact.fixed_point import usable_scale
from mrt.graph.canonical_values import name_of
from mrt.quantize.context import LoweringContext
from mrt.quantize.tensor import HEADROOM, Format, Interval, Tensor

FINE_BITS = 30
"""Bits of a value at the greatest magnitude expected."""


def wide_format(net: LoweringContext, name: str, interval: Interval) -> Format:
    """Return a format of 30 bits for a value, with room for twice the measured range.

    It reaches no further than the proven interval.
    """
    measured, (low, high) = net.table.ranges[name], interval
    expected = max(abs(measured.min), abs(measured.max)) * HEADROOM
    greatest = min(expected, max(abs(low), abs(high)))
    scale = usable_scale(math.ldexp(greatest, -FINE_BITS), net.options.scales)
    return Format("i32", scale, 0, -(2**FINE_BITS), 2**FINE_BITS)


def in_30_bits(net: LoweringContext, value: ir.Value | None) -> Tensor:
    """Return the value straight from the accumulator, in 30 bits."""
    name = name_of(value)
    tensor = net.as_computed(value)
    target = wide_format(net, name, net.interval(tensor))
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
