"""Layer after layer, in the order of the program: weights rounded, and means and gains set, for what the layers before really give.

Each layer's inputs are the integers that the program, as far as it is written, computes of the samples.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from mrt.calibrate.decisions import LayerDecision
from mrt.calibrate.session import Array
from mrt.quantize.fixed_point import FloatArray
from mrt.quantize.lowering import Lowering
from mrt.quantize.rounding import Layer, Rounded, nearest
from mrt.refine.columns import Columns, Window
from mrt.refine.float_notes import FloatNotes
from mrt.refine.moments import BLOCK
from mrt.refine.options import RefineOptions
from mrt.refine.second_order import round_to_second_order
from mrt.refine.simulation import Simulation

MOST_GAIN = 1.25
TOGETHER = 2**19  # numbers of a layer's inputs, at most, that are gone through in one go, if one sample has no more

Progress = Callable[[str, int, int], None]  # what is being done, how much of it is done, how much there is


class Sequential:
    """A rounding (`mrt.quantize.rounding`) that keeps what it decides for each layer, and uses up what was noted of it."""

    def __init__(self, notes: FloatNotes, options: RefineOptions, progress: Progress) -> None:
        self.decisions: dict[str, LayerDecision] = {}
        self._samples = notes.samples
        self._options = options
        self._progress = progress
        self._notes, self._layers = notes.layers, len(notes.layers)
        self._simulation: Simulation | None = None

    def __call__(self, net: Lowering, layer: Layer, scales: FloatArray) -> Rounded:
        """Weights rounded for the inputs that there are, then gains and bias with which the outputs are nearest to float's."""
        outputs = self._notes.pop(layer.name, None)
        if outputs is None:
            return nearest(net, layer, scales)
        columns = self._columns(net, layer, outputs.chosen)
        if self._options.weights:
            integers = round_to_second_order(layer.weights, scales, columns.covariance(), layer.bits)
            added = columns.means_of(integers - _steps(layer, scales)).mean(axis=0) * scales * layer.input_scale
            rounded = Rounded(integers, scales, layer.bias - added)
        else:
            rounded = nearest(net, layer, scales)
        if self._options.biases:
            gains = net.options.scales == "real"
            rounded = _matched(layer, columns, rounded, means=np.stack(outputs.means), gains=gains)
        self.decisions[layer.name] = LayerDecision(rounded.weights, rounded.scales / scales, rounded.bias)
        self._progress("refining layers", len(self.decisions), self._layers)
        return rounded

    def _columns(self, net: Lowering, layer: Layer, chosen: Sequence[Array]) -> Columns:
        """What the weights meet, and what comes of it in float."""
        if self._simulation is None:
            self._simulation = Simulation(net.builder, self._samples)
        window = _window(layer)
        columns, join = Columns(layer.weights.shape, window), np.stack if window is None else np.concatenate
        inputs, zero = self._simulation.values(layer.input.value), np.float32(layer.input.zero_point)
        count = max(1, min(BLOCK // len(chosen[0]), TOGETHER // inputs[0].size))
        for start in range(0, len(inputs), count):
            some = slice(start, start + count)
            columns.add(join(inputs[some]).astype(np.float32) - zero, np.concatenate(chosen[some]))
        return columns


def _matched(layer: Layer, columns: Columns, rounded: Rounded, *, means: FloatArray, gains: bool) -> Rounded:
    """The same weights, with the gain and the bias of each output channel that fit the float outputs best.

    `means` [samples, O] are those of the float outputs.
    """
    scales = rounded.scales
    if gains:
        scales = scales * _gains(*columns.agreement(rounded.weights, scales * layer.input_scale))
    errors = columns.means_of(rounded.weights) * scales * layer.input_scale + layer.bias - means
    return Rounded(rounded.weights, scales, layer.bias - _certain_part(errors))


def _steps(layer: Layer, scales: FloatArray) -> FloatArray:
    """The weights as real numbers of steps."""
    return layer.weights / scales.reshape(-1, *[1] * (layer.weights.ndim - 1))


def _window(layer: Layer) -> Window | None:
    if layer.node.op_type != "Conv":
        return None
    stride, dilation, pads = (layer.node.attributes[name].as_ints() for name in ("strides", "dilations", "pads"))
    kernel = layer.weights.shape[1:3]
    return Window((kernel[0], kernel[1]), (stride[0], stride[1]), (dilation[0], dilation[1]), tuple(pads))


def _gains(covariance: FloatArray, variance: FloatArray) -> FloatArray:
    """The slope of float outputs over computed ones, half by the channel, half by the layer: a channel's own is uncertain."""
    whole = covariance.sum() / max(variance.sum(), 1e-300)
    own = np.where(variance > 0, covariance / np.maximum(variance, 1e-300), whole)
    return np.asarray(np.clip((own + whole) / 2, 1 / MOST_GAIN, MOST_GAIN))


def _certain_part(errors: FloatArray) -> FloatArray:
    """[O]: the mean of errors [samples, O], drawn to 0 as far as it may be the chance of few samples (James-Stein)."""
    mean = errors.mean(axis=0)
    uncertainty = errors.var(axis=0, ddof=1) / len(errors) if len(errors) > 1 else mean**2
    return np.asarray(mean * np.maximum(0.0, 1.0 - uncertainty / np.maximum(mean**2, 1e-300)))
