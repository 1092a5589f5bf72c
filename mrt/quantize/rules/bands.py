"""Writes the bands of a power spectrum as octave codes: sums of bins that range over 45 bits.

Power ranges over twice as many octaves as sound, and 30 linear bits hold half of them. So bins
are summed twice: in steps that reach to the greatest sum, and in steps 2^15 times finer, where
greater bins are cut off. What is cut off makes a fine sum too small, so the greater of both is
right:

    coarse < 2^15:   max(fine, (coarse - error_bound) * 2^15)     error_bound: by how much coarse may be too great
    else:            coarse * 2^15
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import onnx_ir as ir

from mrt.exact.fixed_point import FloatArray
from mrt.graph.canonical_values import name_of, require_constant
from mrt.graph.values import moved_to
from mrt.quantize.builder import Handle
from mrt.quantize.context import LoweringContext
from mrt.quantize.decoded import decoded
from mrt.quantize.layer_weights import LayerWeights
from mrt.quantize.octaves import EXTRA_BITS, OctaveCode
from mrt.quantize.product_operand import OperandPart, halves
from mrt.quantize.quotients import has_nonnegative_weights
from mrt.quantize.roots import Arithmetic
from mrt.quantize.tensor import WIDE_BITS, Tensor, wide_format

ROUNDINGS = 8
"""The parts of a sum, each of which is rounded; a sum of more is still near."""


def are_bands(net: LoweringContext, node: ir.Node) -> bool:
    """Whether a Gemm or a Conv sums the codes of a power to bands, by weights that are never negative.

    What is subtracted from another band needs more bits than those of a code.
    """
    if name_of(node.outputs[0]) not in net.plan.wide_products:
        return False
    if net.code_of(node.inputs[0]) is None or not has_nonnegative_weights(node):
        return False
    return not _is_subtracted(node.outputs[0])


def _is_subtracted(value: ir.Value) -> bool:
    """Whether a value, moved or not, is an operand of a Sub."""
    uses = (use for moved in moved_to(value) for use in moved.uses())
    return any(use.node.op_type == "Sub" for use in uses)


def without_bias(layer: LayerWeights) -> LayerWeights:
    """Return a layer of bands, to whose codes the bias is added."""
    return replace(layer, bias=np.zeros_like(layer.bias))


def bands_of(
    net: LoweringContext,
    node: ir.Node,
    operands: Sequence[OperandPart],
    sum_of: Callable[[Sequence[OperandPart]], Tensor],
) -> Tensor:
    """Return the bands as octave codes.

    `operands` are the bins in coarse steps; `sum_of` writes the sums of bins of either steps.
    """
    layout = operands[0].tensor.layout
    fine_bins = halves(net, net.to_layout(fine_numbers(net, node), layout))
    coarse, fine = sum_of(operands), sum_of(fine_bins)
    scale = np.ldexp(fine.scale, -EXTRA_BITS)
    return _code_of_bands(net, node, coarse, replace(fine, scale=scale))


def fine_numbers(net: LoweringContext, node: ir.Node) -> Tensor:
    """Return the numbers of the code that a node reads in fine steps, cut off at 30 bits."""
    value = node.inputs[0]
    code = net.code_of(value)
    assert code is not None
    range_, scales = net.ranges.of(name_of(value)), net.options.scales
    return decoded(net.builder, code, range_, scales, EXTRA_BITS)


def _code_of_bands(
    net: LoweringContext, node: ir.Node, coarse: Tensor, fine: Tensor
) -> Tensor:
    """Return the bands in octave codes of the fine sums' steps."""
    name = name_of(node.outputs[0])
    range_, interval = net.ranges.of(name), net.interval(coarse)
    target = wide_format(range_, interval, net.options.scales)
    scale = np.ldexp(target.scale, -EXTRA_BITS)
    greatest = net.requantize_to(coarse, target, name)
    least = net.requantize_to(fine, replace(target, scale=float(scale)))
    a = Arithmetic(net.builder, len(coarse.layout))
    error_bound = np.ceil(_most_too_great(net, node, coarse) / target.scale)
    code, octaves = joined(a, greatest.value, least.value, error_bound)
    bands = replace(least, value=code, octaves=octaves)
    return _plus(net, bands, float(require_constant(node, 2).max()))


def _plus(net: LoweringContext, code: Tensor, number: float) -> Tensor:
    """Return a code plus a number that is not negative, by a table."""
    octaves = code.octaves
    if number == 0 or octaves is None:
        return code
    steps = min(round(number / float(code.scale[0])), 2**octaves.length)
    sums = (octaves.numbers() + steps).clip(max=2**octaves.length)
    table = net.constant(octaves.integers(sums).astype(np.int16))
    return replace(code, value=net.builder.emit("table", code.value, table))


def _most_too_great(
    net: LoweringContext, node: ir.Node, coarse: Tensor
) -> FloatArray:
    """Return by how much the coarse sums of each band may be too great, [O]: every bin is rounded, and parts of the sum."""
    step = float(net.as_computed(node.inputs[0]).scale.max())
    weights = require_constant(node, 1)
    rows = weights.reshape(len(weights), -1).tolist()
    of_bins = np.array([math.fsum(row) for row in rows]) * step / 2
    return np.asarray(of_bins + coarse.scale * ROUNDINGS / 2)


def joined(
    a: Arithmetic, coarse: Handle, fine: Handle, error_bound: FloatArray
) -> tuple[Handle, OctaveCode]:
    """Return the code of a sum from its coarse and its fine form, and what the codes stand for.

    `error_bound` is by how many coarse steps a coarse sum may be too great, [O] or [1].
    """
    saturation, end = 2**WIDE_BITS, 2**EXTRA_BITS
    coarse = a.clamp(coarse, 0, saturation)
    most_error = -error_bound.clip(max=end).astype(np.int32)
    less = a.builder.constant(most_error.reshape([1] * (a.rank - 1) + [-1]))
    small = a.clamp(a.add(coarse, less), 0, end)
    fine = a.clamp(fine, 0, saturation)
    small = a.builder.emit("maximum", fine, a.left(small, EXTRA_BITS))
    is_great = a.builder.emit("greater", coarse, a.number(end - 1))
    number = a.builder.emit("select", is_great, coarse, small)
    exponent = a.mul(
        a.builder.emit("cast", is_great, dtype="i32"), a.number(EXTRA_BITS)
    )
    code = OctaveCode.finest(WIDE_BITS + 1 + EXTRA_BITS)
    return code.encode(a, number, exponent), code
