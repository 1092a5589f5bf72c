"""Gathers the float statistics that refining needs while calibration runs the model.

So the float model runs only once.
"""

from __future__ import annotations

import math
from copy import copy

import numpy as np
import onnx_ir as ir

from mrt.calibrate.observed_tensor import ObservedTensor
from mrt.calibrate.samples import Sample, evenly_spaced
from mrt.calibrate.session import Array
from mrt.graph.canonical_values import name_of, shape_of
from mrt.quantize.channel_scales import candidates, readers
from mrt.refine.channel_statistics import ChannelStatistics
from mrt.refine.columns import chosen_places
from mrt.refine.options import RefineOptions
from mrt.refine.stages import Halves, Needs

LAYERS = ("Conv", "Gemm")
# The most weights of an output; with more, the covariance is too large to invert.
MAX_ROW = 5000
MOST_SAMPLES = 100  # samples for the statistics of layers
FEWEST_SAMPLES = 4
MEMORY = 3 * 2**26  # bytes that the statistics of layers may take


class FloatStatistics:
    """A calibration callback that gathers the statistics that these stages need.

    `channels` are the statistics over all samples, over even and over odd ones.
    `layers` are float's outputs [places, O] of each layer, for samples at equal
    distances, as many as memory allows.
    """

    def __init__(
        self, model: ir.Model, stages: RefineOptions, samples: int
    ) -> None:
        self.channels: dict[str, Halves] = {}
        self.layers: dict[str, list[Array]] = {}
        self._samples: dict[int, Sample] = {}
        self._with_moments: frozenset[str] = frozenset()
        self._with_counts: frozenset[str] = frozenset()
        self._chosen: frozenset[int] = frozenset()
        self._of_block = False
        if stages.need(Needs.CHANNELS):
            self._with_moments = _values_with_moments(model)
            self._with_counts = frozenset(map(name_of, candidates(model)))
        if stages.need(Needs.LAYERS):
            count = _sample_count(model, samples)
            self._chosen = frozenset(evenly_spaced(samples, count))
            for node in _layers(model):
                self.layers[name_of(node.outputs[0])] = []

    @property
    def samples(self) -> list[Sample]:
        """The samples of the statistics in `layers`, in order."""
        return list(self._samples.values())

    def take_samples(self) -> list[Sample]:
        """Return these samples, which are not kept."""
        samples, self._samples = self.samples, {}
        return samples

    def observe(
        self, index: int, sample: Sample, name: str, tensor: ObservedTensor
    ) -> None:
        """Take one value of one run of the float model."""
        if name in self._with_moments:
            self._add_channels(index, name, tensor)
        if index in self._chosen:
            self._samples[index] = sample
            if name in self.layers:
                self.layers[name].append(_at_chosen_places(tensor.values))

    def again(self) -> FloatStatistics:
        """Return the same statistics, to be used up without these."""
        other = copy(self)
        other.layers = dict(self.layers)
        return other

    def for_block(self) -> FloatStatistics:
        """Return the statistics of some of the samples, of which none has come yet."""
        block = copy(self)
        block.channels, block._samples = {}, {}
        block.layers = {name: [] for name in self.layers}
        block._of_block = True
        return block

    def merge(self, block: FloatStatistics) -> None:
        """Take the statistics of a block, as if its samples had come here."""
        for name, halves in block.channels.items():
            own_halves = self._channels_of(name, len(halves[0].minimum))
            for half, of_block in zip(own_halves, halves, strict=True):
                half.take(of_block)
        for name, outputs in block.layers.items():
            self.layers[name] += outputs
        self._samples |= block._samples

    def _channels_of(self, name: str, channels: int) -> Halves:
        if name not in self.channels:
            self.channels[name] = (
                ChannelStatistics.empty(channels, of_block=self._of_block),
                ChannelStatistics.empty(channels, of_block=self._of_block),
            )
        return self.channels[name]

    def _add_channels(
        self, index: int, name: str, tensor: ObservedTensor
    ) -> None:
        half = self._channels_of(name, tensor.subsample.shape[1])[index % 2]
        if name in self._with_counts:
            half.add(tensor)
        else:
            half.add_moments(tensor)


def _values_with_moments(model: ir.Model) -> frozenset[str]:
    """Return the values whose channels may have scales, and the outputs of their readers."""
    names: set[str] = set()
    for value in candidates(model):
        names.add(name_of(value))
        for node in readers(value):
            names.update(name_of(output) for output in node.outputs)
    return frozenset(names)


def _at_chosen_places(values: Array) -> Array:
    """Return a layer's outputs [1,O,H,W], or [N,O], at the chosen positions: [places, O]."""
    image = values[:, None, :]
    if values.ndim == 4:
        image = values[0].transpose(1, 2, 0)
    height, width, channels = image.shape
    rows, columns = chosen_places(height, width)
    return np.array(image[rows, columns]).reshape(-1, channels)


def _sample_count(model: ir.Model, samples: int) -> int:
    """Return the number of samples for the statistics of layers."""
    layers = _layers(model)
    outputs = [shape_of(node.outputs[0]) for node in layers]
    output_bytes = sum(4 * _place_count(shape) * shape[1] for shape in outputs)
    # Inputs are kept as integers, those of one layer at a time.
    inputs = [math.prod(shape_of(node.inputs[0])) for node in layers]
    of_one_sample = max(output_bytes + 2 * max(inputs, default=0), 1)
    return min(
        MOST_SAMPLES, max(FEWEST_SAMPLES, MEMORY // of_one_sample), samples
    )


def _place_count(shape: tuple[int, ...]) -> int:
    """Return how many positions of a layer's outputs [1,O,H,W], or [N,O], are chosen."""
    height, width = shape[0], 1
    if len(shape) == 4:
        height, width = shape[2:]
    rows, columns = chosen_places(height, width)
    count = len(range(height)[rows])
    return count * len(range(width)[columns])


def _layers(model: ir.Model) -> list[ir.Node]:
    return [node for node in model.graph if _can_be_refined(node)]


def _can_be_refined(node: ir.Node) -> bool:
    """Whether the samples can decide the weights of a node.

    Each sample must be one image, and an output must have so few weights that their
    covariance can be inverted.
    """
    if node.op_type not in LAYERS:
        return False
    weights = node.inputs[1]
    if weights is None or weights.const_value is None:
        return False
    one_image = node.op_type == "Gemm" or shape_of(node.outputs[0])[0] == 1
    return one_image and math.prod(shape_of(weights)[1:]) <= MAX_ROW
