"""`fit`: fits real weights to float's outputs, for the integers that a layer meets.

It is a ridge regression on the layer's inputs (`mrt.refine.fitting`), before the
weights are rounded; compare AdaQuant, Hubara et al., arXiv 2006.10518.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from mrt.refine.fitting import Fitting, best_correction, can_be_fitted
from mrt.refine.matching import interval_behind
from mrt.refine.moments import Moments
from mrt.refine.stages.stage import LayerState, Needs, RefineStage


def decide(state: LayerState) -> LayerState:
    """Correct the weights of a layer for which there are enough samples.

    The bias keeps the means of the outputs. The state receives the moments of the
    inputs too. An average has nothing to fit.
    """
    length = math.prod(state.layer.weights.shape[1:])
    blocks = state.inputs.blocks_for_moments()
    if state.layer.averages:
        return state
    if not can_be_fitted(length, state.inputs.count) or len(blocks) < 2:
        return state
    state.require_covariance()
    halves = _fitted_halves(state, blocks, length)
    moments = Moments.merged(halves[0].moments, halves[1].moments)
    correction = best_correction(halves)
    return _with_correction(replace(state, moments=moments), correction)


def _fitted_halves(
    state: LayerState, blocks: range, length: int
) -> tuple[Fitting, Fitting]:
    layer, inputs = state.layer, state.inputs
    by_group = (
        layer.weights.reshape(inputs.groups, -1, length) * layer.input_scale
    )
    low, high = interval_behind(layer.output)
    interval = low - layer.centres, high - layer.centres
    centres = layer.centres.astype(np.float32)
    halves = (
        Fitting(by_group, layer.bias, interval),
        Fitting(by_group, layer.bias, interval),
    )

    def add(half: int, block: int) -> None:
        floats = np.concatenate(state.outputs[inputs.blocks[block]])
        halves[half].add(inputs.rows(block), floats - centres)

    state.in_halves(blocks, add)
    return halves


def _with_correction(state: LayerState, correction: np.ndarray) -> LayerState:
    """Add a correction [groups, n, K] to the weights."""
    layer, moments = state.layer, state.moments
    assert moments is not None
    added = (correction / layer.input_scale).reshape(layer.weights.shape)
    of_means = np.matmul(correction, moments.means[:, :, None])
    weights = layer.weights + added
    bias = layer.bias - of_means.reshape(-1)
    return replace(state, layer=replace(layer, weights=weights, bias=bias))


FIT = RefineStage("fit", Needs.LAYERS, decide)
