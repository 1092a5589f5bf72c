"""`weights`: rounds weights to second order, for the integers that a layer meets.

This is GPTQ, Frantar et al., arXiv 2210.17323 (`mrt.refine.second_order`).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from cvm.program import IntArray
from mrt.exact.fixed_point import FloatArray
from mrt.quantize.rounding import RoundedLayer, WeightedLayer
from mrt.refine.moments import Moments
from mrt.refine.second_order import round_at_best_scales, round_to_second_order
from mrt.refine.stages.stage import LayerState, Needs, RefineStage


def decide(state: LayerState) -> LayerState:
    """Round the weights, and subtract the mean error of the rounding from the bias.

    Those of an average are exact already. The moments are used up.
    """
    layer = state.layer
    if layer.averages:
        return state
    moments = state.moments or _gather_moments(state)
    if state.options.chooses_weight_scales:
        integers, scales = round_at_best_scales(
            layer.weights, layer.scales, moments.covariance, layer.bits
        )
    else:
        scales = layer.scales
        integers = round_to_second_order(
            layer.weights, scales, moments.covariance, layer.bits
        )
    bias = layer.bias - _mean_error(layer, integers, scales, moments)
    rounded = RoundedLayer(integers, scales, bias)
    return replace(state, moments=None, rounded=rounded)


def _gather_moments(state: LayerState) -> Moments:
    state.require_covariance()
    halves = Moments(), Moments()

    def add(half: int, block: int) -> None:
        halves[half].add(state.inputs.rows(block))

    state.in_halves(state.inputs.blocks_for_moments(), add)
    halves[0].take(halves[1])
    return halves[0]


def _mean_error(
    layer: WeightedLayer,
    integers: IntArray,
    scales: FloatArray,
    moments: Moments,
) -> FloatArray:
    """Return the mean error that rounding the weights causes in each output, [O]."""
    groups, length = moments.means.shape
    ones = [1] * (layer.weights.ndim - 1)
    per_output = scales.reshape(-1, *ones)
    errors = integers - layer.weights / per_output
    by_group = errors.reshape(groups, -1, length)
    in_steps = np.matmul(by_group, moments.means[:, :, None])
    return np.asarray(in_steps.reshape(-1) * scales * layer.input_scale)


WEIGHTS = RefineStage("weights", Needs.LAYERS, decide)
