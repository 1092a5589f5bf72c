"""Makes the integer weights and bias of one layer.

The weights absorb scales and centres of the input's channels before they are rounded.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass, replace

import numpy as np
import onnx_ir as ir

from cvm.program import IntArray
from mrt.exact.fixed_point import FloatArray
from mrt.graph.canonical_values import name_of, require_constant
from mrt.graph.values import ints_attribute
from mrt.quantize.channel_centres import absorbed_centres
from mrt.quantize.context import LoweringContext
from mrt.quantize.rounding import (
    RoundedLayer,
    WeightedLayer,
    nearest_keeping_bias,
)
from mrt.quantize.tensor import Tensor
from mrt.quantize.weights import quantize_bias, weight_scales

NO_CENTRES = np.zeros(1)
NEARLY = 1e-6
"""Sums that a bias may miss by float's own rounding."""


@dataclass(frozen=True, eq=False)
class LayerWeights:
    """Integer weights [O,..,C/groups] and bias [O], and the scale of each accumulator [O]."""

    weights: IntArray
    bias: IntArray
    scales: FloatArray


def integer_weights(
    net: LoweringContext,
    node: ir.Node,
    x: Tensor,
    weights: FloatArray,
    *,
    shares: FloatArray | float = 1.0,
    centres: FloatArray = NO_CENTRES,
) -> Generator[WeightedLayer, RoundedLayer, LayerWeights]:
    """Round the weights and the bias (operand 2) of a layer that multiplies `x`.

    Yield the layer once and take its rounded weights, unless they are those of the bands of a
    spectrum, or lose nothing by rounding: these are rounded to the nearest.

    If the channels of x have scales of their own, the weights absorb the ratios of
    these to the largest scale. The bias absorbs the products of the weights and the
    centres of x, and the output's own `centres` are subtracted from it. `shares` as in
    `weights.mean_error`. A filter of a waveform keeps its own bias, mostly 0, whatever would
    correct its weights, so that the spectrum of silence is 0.
    """
    bits = net.options.weight_bits_of(name_of(node.outputs[0]))
    bias = require_constant(node, 2) + absorbed_centres(x, weights) - centres
    relative = _relative_to_largest_scale(weights, x)
    input_scale = float(x.scale.max())
    scales = scales_of_weights(
        net,
        relative,
        bits,
        bias=bias,
        input_scale=input_scale,
        in_pairs=_gains_by_pairs(net, node, relative),
    )
    layer = WeightedLayer(
        node, x, relative, bias, centres, bits, shares, scales
    )
    if layer.is_exact and _only_signs_read(node):
        layer = replace(layer, bias=between_sums(layer))
    if layer.is_exact or layer.name in net.plan.wide_products:
        rounded = nearest_keeping_bias(layer)
    else:
        rounded = yield layer
    if layer.name in net.plan.waveforms:
        rounded = replace(rounded, bias=layer.bias)
    accumulator_scales = rounded.scales * input_scale
    integer_bias = quantize_bias(rounded.bias, accumulator_scales)
    return LayerWeights(rounded.weights, integer_bias, accumulator_scales)


def _only_signs_read(node: ir.Node) -> bool:
    """Whether nothing of a layer's output counts but its sign: an output of the model counts whole."""
    output = node.outputs[0]
    readers = {use.node.op_type for use in output.uses()}
    return readers == {"Sign"} and not output.is_graph_output()


def between_sums(layer: WeightedLayer) -> FloatArray:
    """Return the bias [O] that gives every sum of integers the same sign as the layer's own, with the most room.

    Sums are multiples of the greatest common divisor of an output's weights. A bias
    between two multiples moves to the middle of them, where its rounding moves it across none.
    """
    rows = layer.weights.reshape(len(layer.weights), -1)
    steps = np.rint(rows / layer.scales[:, None]).astype(np.int64)
    divisors = np.gcd.reduce(steps, axis=1)
    sizes = np.maximum(divisors, 1) * layer.scales
    places = layer.bias / sizes
    nearest = np.rint(places)
    is_multiple = np.abs(places - nearest) < NEARLY
    middle = np.where(is_multiple, nearest, np.floor(places) + 0.5) * sizes
    return np.asarray(np.where(divisors > 1, middle, layer.bias))


def scales_of_weights(
    net: LoweringContext,
    weights: FloatArray,
    bits: int,
    *,
    bias: FloatArray,
    input_scale: float,
    in_pairs: bool = False,
) -> FloatArray:
    """`weights.weight_scales` with the options of this conversion."""
    return weight_scales(
        weights,
        bias,
        input_scale,
        bits=bits,
        scales=net.options.scales,
        per_channel=net.options.per_channel,
        in_pairs=in_pairs,
    )


def _gains_by_pairs(
    net: LoweringContext, node: ir.Node, weights: FloatArray
) -> bool:
    """Return whether a processor named by `fast_on` would multiply these weights in pairs.

    It multiplies single channels and, in most layers, 3x3 windows of stride 1 otherwise.
    """
    if net.options.fast_on is None:
        return False
    strides = ints_attribute(node, "strides") or (1,)
    is_small = weights.shape[1:-1] == (3, 3) and set(strides) == {1}
    return weights.shape[-1] > 1 and not is_small


def _relative_to_largest_scale(weights: FloatArray, x: Tensor) -> FloatArray:
    """Rescale weights [O,..,C/groups] for an x whose channels all have its largest scale.

    sum of w_c * scale_c * q_c = largest * sum of (w_c * scale_c / largest) * q_c.
    """
    if x.per_tensor:
        return weights
    outputs, inputs = len(weights), weights.shape[-1]
    ratios = (x.scale / x.scale.max()).reshape(-1, inputs)  # [groups, C/groups]
    outputs_per_group = outputs // len(ratios)
    per_output: FloatArray = np.repeat(ratios, outputs_per_group, axis=0)
    between = [1] * (weights.ndim - 2)
    return np.multiply(weights, per_output.reshape(outputs, *between, inputs))
