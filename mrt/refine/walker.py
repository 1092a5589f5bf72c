"""Walks through the layers in the order of the program and decides each one's weights.

The graph is lowered up to a layer with weights (`mrt.quantize.graph.GraphLowering`).
The program written so far computes the integers that this layer takes for the samples.
With these the stages decide, the layer is written, and the lowering goes on. So each
layer is decided for the integers that the layers before it really compute. The program
written on the way is not kept: `quantize` writes it again from the calibration table.

Layers that share their real weights, as the steps of a recurrence do, share the integers
of the first of them (`mrt.refine.shared_weights`); each has its own biases.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from mrt.calibrate.session import Array
from mrt.memory import Surplus
from mrt.quantize.graph import GraphLowering
from mrt.quantize.rounding import RoundedLayer, WeightedLayer, nearest
from mrt.refine.columns import LayerInputs, Window
from mrt.refine.float_statistics import FloatStatistics
from mrt.refine.shared_weights import SharedWeights, key_of
from mrt.refine.simulation import Simulation
from mrt.refine.stages import LayerState, RefineStage, TooLarge
from mrt.refine.stages.biases import BIASES
from mrt.table.decisions import LayerDecision

ProgressCallback = Callable[[str, int, int], None]
"""A function of the task, how much of it is done, and how much there is."""


def decide_layers(
    lowering: GraphLowering,
    statistics: FloatStatistics,
    stages: Sequence[RefineStage[LayerState]],
    progress: ProgressCallback,
    notes: list[str] | None = None,
) -> dict[str, LayerDecision]:
    """Decide the layers that have statistics by these stages; the statistics are used up.

    A stage that finds no solution for a layer is left out there, which is noted.
    """
    decisions: dict[str, LayerDecision] = {}
    noted = [] if notes is None else notes
    shared = SharedWeights()
    of_biases = [stage for stage in stages if stage is BIASES]
    count = len(statistics.layers)
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        layer = lowering.next_layer()  # declares the inputs
        simulation = Simulation(
            lowering.builder, statistics.take_samples(), pool
        )
        surplus = Surplus()

        def decide(
            layer: WeightedLayer, outputs: Sequence[Array]
        ) -> RoundedLayer:
            key = key_of(layer)
            state = LayerState(
                layer,
                lowering.table,
                lowering.options,
                inputs=_inputs(layer, simulation, len(outputs[0])),
                outputs=outputs,
                pool=pool,
                rounded=shared.take(key, layer),
            )
            layer_stages = stages if state.rounded is None else of_biases
            for stage in layer_stages:
                surplus.give_back()
                state = _decided(stage, state, noted)
            rounded = state.rounded_layer()
            if layer_stages is stages:
                shared.keep(key, layer, rounded)
            return rounded

        while layer is not None:
            outputs = statistics.layers.pop(layer.name, None)
            if outputs is None:
                rounded = nearest(layer, lowering.table, lowering.options)
            else:
                rounded = decide(layer, outputs)
                decisions[layer.name] = _decision(layer, rounded)
                progress("refining layers", len(decisions), count)
            layer = lowering.next_layer(rounded)
    return decisions


def _decided(
    stage: RefineStage[LayerState], state: LayerState, notes: list[str]
) -> LayerState:
    try:
        return stage.decide(state)
    except (np.linalg.LinAlgError, TooLarge) as problem:
        notes.append(
            f"layer '{state.layer.name}' goes without the refining stage '{stage.name}': {problem}"
        )
        return state


def _decision(layer: WeightedLayer, rounded: RoundedLayer) -> LayerDecision:
    gains = rounded.scales / layer.scales
    return LayerDecision(rounded.weights, gains, rounded.bias)


def _inputs(
    layer: WeightedLayer, simulation: Simulation, places: int
) -> LayerInputs:
    """Return the integers that the layer takes, for so many outputs of each sample."""
    return LayerInputs(
        simulation.values(layer.input.value),
        _window(layer),
        length=math.prod(layer.weights.shape[1:]),
        zero_point=int(layer.input.zero_point),
        places=places,
    )


def _window(layer: WeightedLayer) -> Window | None:
    if layer.node.op_type != "Conv":
        return None
    attributes = layer.node.attributes
    stride, dilation, pads = (
        attributes[name].as_ints() for name in ("strides", "dilations", "pads")
    )
    kernel = layer.weights.shape[1:3]
    return Window(
        (kernel[0], kernel[1]),
        (stride[0], stride[1]),
        (dilation[0], dilation[1]),
        tuple(pads),
    )
