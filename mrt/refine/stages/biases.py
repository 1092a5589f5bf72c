"""`biases`: gives each output channel the mean and the gain that it has in the float model.

This is bias correction on samples (Nagel et al., arXiv 1906.04721) with an additional
gain, for the integers that the layers before really compute (`mrt.refine.matching`).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from mrt.quantize.rounding import RoundedLayer
from mrt.quantize.weights import BIAS_LIMIT
from mrt.refine.columns import products
from mrt.refine.matching import Matching, interval_behind
from mrt.refine.stages.stage import LayerState, Needs, RefineStage


def decide(state: LayerState) -> LayerState:
    """Set the bias and the scale of each output; the weights remain.

    An output whose bias would have more steps than `weight_scales` leaves it keeps its own: i32 may not hold the sums.
    """
    rounded = state.rounded_layer()
    matching = _matching(state, rounded)
    gains, added = matching.result(gains=state.options.chooses_weight_scales)
    scales = rounded.scales * gains
    bias = rounded.bias * gains + added
    fits = np.abs(bias) <= BIAS_LIMIT * scales * state.layer.input_scale
    scales = np.where(fits, scales, rounded.scales)
    bias = np.where(fits, bias, rounded.bias)
    return replace(state, rounded=RoundedLayer(rounded.weights, scales, bias))


def _matching(state: LayerState, rounded: RoundedLayer) -> Matching:
    """Return the outputs computed from the integers, paired with float's."""
    layer, inputs = state.layer, state.inputs
    matching = Matching(interval_behind(layer.output))
    scales = (rounded.scales * layer.input_scale).astype(np.float32)
    bias = rounded.bias.astype(np.float32)
    centres = layer.centres.astype(np.float32)
    for index, block in enumerate(inputs.blocks):
        floats = np.stack(state.outputs[block]) - centres
        sums = products(inputs.rows(index), rounded.weights)
        outputs = sums * scales + bias
        matching.add(outputs.reshape(floats.shape), floats)
    return matching


BIASES = RefineStage("biases", Needs.LAYERS, decide)
