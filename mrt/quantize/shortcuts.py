"""Residual sums in the accumulators of a convolution: what is added is brought to their scales, channel by channel.

The accumulators need no multiplier, so that a sum is rounded once, when a reader requantizes
it. A shortcut of 8 bits is multiplied by an integer of at most 15 bits for each channel. For
that, accumulators are shifted: to the left, which is exact, by as little as the integer
allows, so that a sum has few bits; and to the right where a channel is next to nothing.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import onnx_ir as ir

from cvm.program import IntArray
from mrt.exact.fixed_point import FloatArray
from mrt.exact.short_multipliers import STEPS
from mrt.quantize.channel_centres import is_sum, summed
from mrt.quantize.context import LoweringContext
from mrt.quantize.tensor import NHWC, Tensor

MOST_BITS = 15
"""The most of a factor, since kernels multiply by 16-bit integers."""

MOST_ERROR = 0.3
"""In steps of a shortcut, of its values at the end of the 8-bit range."""

HALF_RANGE_BITS = 30
"""Accumulators and what is added to them stay within half of i32 each."""


def shortcut_sum(
    net: LoweringContext, node: ir.Node, operands: list[Tensor]
) -> Tensor | None:
    """Write the sum of accumulators and a shortcut; None where it is something else, or one scale is needed."""
    if node.op_type != "Add" or not is_sum(node) or not _may_differ(net):
        return None
    candidates = [tensor for tensor in operands if _is_accumulator(net, tensor)]
    if not candidates:
        return None
    sums = max(candidates, key=lambda tensor: tensor.value)
    first, second = operands
    other = second if sums is first else first
    total = _with_bytes(net, sums, other) or _with_sums(net, sums, other)
    if total is None:
        return None
    return replace(total, centres=summed(node, *operands))


def _may_differ(net: LoweringContext) -> bool:
    """Return whether scales may be any reals, and no option or file requires others."""
    options = net.options
    return (
        options.scales == "real"
        and options.sum_bits is None
        and not net.file_formats
    )


def _is_accumulator(net: LoweringContext, tensor: Tensor) -> bool:
    """Whether a tensor is a convolution's, as it is, with a scale for each channel."""
    if tensor.clipped or tensor.zero_point or tensor.layout != NHWC:
        return False
    channels = net.shape(tensor)[-1]
    return net.dtype(tensor) == "i32" and tensor.scale.size == channels


def _with_bytes(
    net: LoweringContext, sums: Tensor, other: Tensor
) -> Tensor | None:
    """Add a shortcut of 8 bits."""
    if net.dtype(other) != "i8" or other.clipped or other.layout != NHWC:
        return None
    ratios = other.scale / sums.scale
    shifts = np.minimum(_shifts(ratios), _room(net, sums))
    factors = np.rint(np.ldexp(ratios, shifts))
    if np.any(_errors(ratios, shifts) > MOST_ERROR):
        return None
    shifted = sums.value
    if np.any(shifts):
        shifted = net.rescale(sums, np.ldexp(1.0, shifts), "i32", 0)
    added = net.rescale(other, factors, "i32", 0)
    value = net.builder.emit("add", shifted, added)
    return Tensor(value, np.ldexp(sums.scale, -shifts), 0, sums.layout)


def _shifts(ratios: FloatArray) -> IntArray:
    """Return the least exponents, from 0 on, at which factors are near enough; less than 0 for more than MOST_BITS."""
    _, exponents = np.frexp(ratios)
    most = MOST_BITS - exponents
    candidates = np.clip(0, 1 - exponents, most)
    for _ in range(MOST_BITS):
        candidates = candidates + (_errors(ratios, candidates) > MOST_ERROR)
    rounds_up = np.rint(np.ldexp(ratios, candidates)) == 2**MOST_BITS
    shifts: IntArray = candidates - rounds_up
    return shifts


def _errors(ratios: FloatArray, shifts: IntArray) -> FloatArray:
    """Return how many steps of a shortcut its greatest values are off when factors are integers."""
    factors = np.rint(np.ldexp(ratios, shifts))
    return np.abs(np.ldexp(factors, -shifts) / ratios - 1) * STEPS


def _room(net: LoweringContext, tensor: Tensor) -> IntArray:
    """Return how far the integers of each channel can be shifted within half of i32."""
    bounds = net.builder.bounds[tensor.value]
    greatest = np.maximum(np.abs(bounds.lo), np.abs(bounds.hi))
    _, bits = np.frexp(greatest.astype(np.float64))
    room: IntArray = HALF_RANGE_BITS - bits
    return room


def _with_sums(
    net: LoweringContext, sums: Tensor, other: Tensor
) -> Tensor | None:
    """Add another convolution's accumulators."""
    if not _is_accumulator(net, other):
        return None
    ratios = other.scale / sums.scale
    _, bits = np.frexp(ratios)
    if np.any(_room(net, other) < bits) or np.any(_room(net, sums) < 0):
        return None
    added = net.rescale(other, ratios, "i32", 0)
    value = net.builder.emit("add", sums.value, added)
    return Tensor(value, sums.scale, 0, sums.layout)
