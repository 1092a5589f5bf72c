"""Layer after layer, in the order of the program: weights rounded, and means and gains set, for what the layers before really give.

Each layer's inputs are the integers that the program, as far as it is written, computes of the samples.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
import onnx_ir as ir

from mrt.calibrate.decisions import LayerDecision
from mrt.calibrate.samples import Sample
from mrt.calibrate.session import Array, FloatSession
from mrt.quantize.fixed_point import FloatArray
from mrt.quantize.lowering import Lowering, name_of, shape_of
from mrt.quantize.rounding import Layer, Rounded, nearest
from mrt.refine.columns import Columns, Window, chosen_places
from mrt.refine.options import RefineOptions
from mrt.refine.second_order import round_to_second_order
from mrt.refine.simulation import Simulation

LAYERS = ("Conv", "Gemm")
MAX_ROW = 5000  # weights of one output beyond which their covariance is too large to invert
MOST_GAIN = 1.25

Progress = Callable[[str, int, int], None]  # what is being done, how much of it is done, how much there is


@dataclass
class _Outputs:
    """What a layer computes in the float model: by sample, the mean of each channel, and some places [places, O]."""

    means: list[FloatArray] = field(default_factory=list)
    chosen: list[Array] = field(default_factory=list)

    def add(self, values: Array) -> None:
        """One sample: [1,O,H,W], or [N,O]."""
        self.means.append(values.mean(axis=tuple(axis for axis in range(values.ndim) if axis != 1), dtype=np.float64))
        if values.ndim == 4:
            values = values[0].transpose(1, 2, 0)[chosen_places(*values.shape[2:])]
        self.chosen.append(values.reshape(-1, values.shape[-1]))


class Sequential:
    """A rounding (`mrt.quantize.rounding`) that notes what it decides for each layer."""

    def __init__(self, model: ir.Model, samples: Sequence[Sample], options: RefineOptions, progress: Progress) -> None:
        self.decisions: dict[str, LayerDecision] = {}
        self._samples = samples
        self._options = options
        self._progress = progress
        self._outputs = _outputs(model, samples)
        self._simulation: Simulation | None = None

    def __call__(self, net: Lowering, layer: Layer, scales: FloatArray) -> Rounded:
        """Weights rounded for the inputs that there are, then gains and bias with which the outputs are nearest to float's."""
        if layer.name not in self._outputs:
            return nearest(net, layer, scales)
        columns = self._columns(net, layer)
        if self._options.weights:
            integers = round_to_second_order(layer.weights, scales, columns.covariance(), layer.bits)
            added = columns.means_of(integers - _steps(layer, scales)).mean(axis=0) * scales * layer.input_scale
            rounded = Rounded(integers, scales, layer.bias - added)
        else:
            rounded = nearest(net, layer, scales)
        if self._options.biases:
            rounded = self._matched(layer, columns, rounded, gains=net.options.scales == "real")
        self.decisions[layer.name] = LayerDecision(rounded.weights, rounded.scales / scales, rounded.bias)
        self._progress("refining layers", len(self.decisions), len(self._outputs))
        return rounded

    def _columns(self, net: Lowering, layer: Layer) -> Columns:
        """What the weights meet, and what comes of it in float."""
        if self._simulation is None:
            self._simulation = Simulation(net.builder, self._samples)
        columns = Columns(layer.weights.shape, _window(layer))
        zero = np.float32(layer.input.zero_point)
        inputs = self._simulation.values(layer.input.value)
        for integers, outputs in zip(inputs, self._outputs[layer.name].chosen, strict=True):
            columns.add(integers.astype(np.float32) - zero, outputs)
        return columns

    def _matched(self, layer: Layer, columns: Columns, rounded: Rounded, *, gains: bool) -> Rounded:
        """The same weights, with the gain and the bias of each output channel that fit the float outputs best."""
        scales = rounded.scales
        if gains:
            scales = scales * _gains(*columns.agreement(rounded.weights, scales * layer.input_scale))
        means = columns.means_of(rounded.weights) * scales * layer.input_scale + layer.bias
        errors = means - np.stack(self._outputs[layer.name].means)
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


def _outputs(model: ir.Model, samples: Sequence[Sample]) -> dict[str, _Outputs]:
    names = [name_of(node.outputs[0]) for node in model.graph if _can_be_refined(node)]
    found = {name: _Outputs() for name in names}
    session = FloatSession(model, names)
    for sample in samples:
        for name, values in session.run(sample).items():
            found[name].add(values)
    return found


def _can_be_refined(node: ir.Node) -> bool:
    """One image a sample, and no more weights to an output than can be weighed against each other."""
    if node.op_type not in LAYERS or node.inputs[1] is None or node.inputs[1].const_value is None:
        return False
    output, inner = shape_of(node.outputs[0]), shape_of(node.inputs[1])[1:]
    return (node.op_type == "Gemm" or output[0] == 1) and int(np.prod(inner)) <= MAX_ROW
