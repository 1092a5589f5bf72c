"""Layer after layer, in the order of the program: weights fitted and rounded, means and gains set, for what comes before.

Each layer's inputs are the integers that the program, as far as it is written, computes of the samples.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from dataclasses import replace

import numpy as np

from mrt.calibrate.session import Array
from mrt.exact.fixed_point import FloatArray
from mrt.quantize.graph import GraphLowering
from mrt.quantize.rounding import RoundedLayer, WeightedLayer, nearest
from mrt.refine.columns import LayerInputs, Window, products
from mrt.refine.fitting import Fitting, can_be_fitted, moved
from mrt.refine.float_notes import FloatStatistics
from mrt.refine.matching import Matching, ends_behind
from mrt.refine.moments import Moments
from mrt.refine.options import RefineOptions
from mrt.refine.second_order import round_at_best_scales, round_to_second_order
from mrt.refine.simulation import Simulation
from mrt.table.decisions import LayerDecision

Progress = Callable[
    [str, int, int], None
]  # what is being done, how much of it is done, how much there is


class Sequential:
    """A rounding (`mrt.quantize.rounding`) that keeps what it decides for each layer, and uses up what was noted of it."""

    def __init__(
        self,
        notes: FloatStatistics,
        options: RefineOptions,
        progress: Progress,
        pool: Executor,
    ) -> None:
        self.decisions: dict[str, LayerDecision] = {}
        self._samples = notes.samples
        self._options = options
        self._progress = progress
        self._pool = pool
        self._notes, self._layers = notes.layers, len(notes.layers)
        self._simulation: Simulation | None = None

    def __call__(self, net: GraphLowering, layer: WeightedLayer) -> RoundedLayer:
        """Weights rounded for the inputs that there are, then gains and bias with which the outputs are nearest to float's."""
        scales = layer.scales
        outputs = self._notes.pop(layer.name, None)
        if outputs is None:
            return nearest(layer, net.table, net.options)
        inputs = self._inputs(net, layer, len(outputs[0]))
        layer, moments = self._fitted(layer, inputs, outputs)
        rounded = self._rounded(net, layer, scales, moments)
        if self._options.biases:
            rounded = self._matched(net, layer, rounded, inputs, outputs)
        self.decisions[layer.name] = LayerDecision(
            rounded.weights, rounded.scales / scales, rounded.bias
        )
        self._progress("refining layers", len(self.decisions), self._layers)
        return rounded

    def _fitted(
        self, layer: WeightedLayer, inputs: LayerInputs, outputs: Sequence[Array]
    ) -> tuple[WeightedLayer, Moments]:
        """The layer with weights that fit these inputs, if that is asked for and they are few enough; and the inputs' moments."""
        length, enough = math.prod(layer.weights.shape[1:]), inputs.enough_for_moments()
        if (
            not self._options.fit
            or not can_be_fitted(length, inputs.count)
            or len(enough) < 2
        ):
            return layer, self._moments(inputs) if self._options.weights else Moments()
        weights = layer.weights.reshape(inputs.groups, -1, length) * layer.input_scale
        low, high = ends_behind(layer.output)
        centres = layer.centres.astype(np.float32)
        halves = [
            Fitting(weights, layer.bias, low - layer.centres, high - layer.centres)
            for _ in (0, 1)
        ]

        def see(half: int, index: int) -> None:
            halves[half].add(
                inputs.rows(index),
                np.concatenate(outputs[inputs.blocks[index]]) - centres,
            )

        self._in_halves(enough, see)
        moments = halves[0].moments.together(halves[1].moments)
        added = moved(halves)
        real = layer.weights + (added / layer.input_scale).reshape(layer.weights.shape)
        bias = layer.bias - np.matmul(added, moments.means[:, :, None]).reshape(-1)
        return replace(layer, weights=real, bias=bias), moments

    def _moments(self, inputs: LayerInputs) -> Moments:
        halves = Moments(), Moments()
        self._in_halves(
            inputs.enough_for_moments(),
            lambda half, index: halves[half].add(inputs.rows(index)),
        )
        return halves[0].together(halves[1])

    def _in_halves(self, blocks: range, see: Callable[[int, int], None]) -> None:
        """Every other block to half 0 and to half 1, both at once: each adds up its own numbers in its own order."""

        def see_half(half: int) -> None:
            for index in blocks[half::2]:
                see(half, index)

        other = self._pool.submit(see_half, 1)
        see_half(0)
        other.result()

    def _rounded(
        self,
        net: GraphLowering,
        layer: WeightedLayer,
        scales: FloatArray,
        moments: Moments,
    ) -> RoundedLayer:
        """The weights alone, and the bias that gives back what their rounding adds on average."""
        if not self._options.weights:
            return nearest(layer, net.table, net.options)
        if net.options.chooses_weight_scales:
            integers, scales = round_at_best_scales(
                layer.weights, scales, moments.covariance, layer.bits
            )
        else:
            integers = round_to_second_order(
                layer.weights, scales, moments.covariance, layer.bits
            )
        errors = (integers - _steps(layer, scales)).reshape(
            len(moments.means), -1, moments.means.shape[1]
        )
        added = (
            np.matmul(errors, moments.means[:, :, None]).reshape(-1)
            * scales
            * layer.input_scale
        )
        return RoundedLayer(integers, scales, layer.bias - added)

    def _matched(
        self,
        net: GraphLowering,
        layer: WeightedLayer,
        rounded: RoundedLayer,
        inputs: LayerInputs,
        outputs: Sequence[Array],
    ) -> RoundedLayer:
        """The same weights, with the gain and the bias of each output channel that fit the float outputs best."""
        matching = Matching(ends_behind(layer.output))
        accumulator, bias, centres = (
            item.astype(np.float32)
            for item in (
                rounded.scales * layer.input_scale,
                rounded.bias,
                layer.centres,
            )
        )
        for index, some in enumerate(inputs.blocks):
            wanted = np.stack(outputs[some]) - centres
            computed = (
                products(inputs.rows(index), rounded.weights) * accumulator + bias
            )
            matching.add(computed.reshape(wanted.shape), wanted)
        gains, added = matching.result(gains=net.options.chooses_weight_scales)
        return RoundedLayer(
            rounded.weights, rounded.scales * gains, rounded.bias * gains + added
        )

    def _inputs(
        self, net: GraphLowering, layer: WeightedLayer, places: int
    ) -> LayerInputs:
        """What the weights meet."""
        if self._simulation is None:
            self._simulation = Simulation(net.builder, self._samples, self._pool)
        values, length = (
            self._simulation.values(layer.input.value),
            math.prod(layer.weights.shape[1:]),
        )
        return LayerInputs(
            values, _window(layer), length, int(layer.input.zero_point), places
        )


def _steps(layer: WeightedLayer, scales: FloatArray) -> FloatArray:
    """The weights as real numbers of steps."""
    return layer.weights / scales.reshape(-1, *[1] * (layer.weights.ndim - 1))


def _window(layer: WeightedLayer) -> Window | None:
    if layer.node.op_type != "Conv":
        return None
    stride, dilation, pads = (
        layer.node.attributes[name].as_ints()
        for name in ("strides", "dilations", "pads")
    )
    kernel = layer.weights.shape[1:3]
    return Window(
        (kernel[0], kernel[1]),
        (stride[0], stride[1]),
        (dilation[0], dilation[1]),
        tuple(pads),
    )
