"""What refining must know of the float model: noted while calibration runs it, so that it runs once."""

from __future__ import annotations

import math

import numpy as np
import onnx_ir as ir

from mrt.calibrate.observed_tensor import ObservedTensor
from mrt.calibrate.samples import Sample, evenly_spaced
from mrt.calibrate.session import Array
from mrt.graph.canonical_values import name_of, shape_of
from mrt.quantize.channel_scales import candidates
from mrt.refine.channels import Channels
from mrt.refine.columns import chosen_places
from mrt.refine.equalize import watched
from mrt.refine.options import RefineOptions

LAYERS = ("Conv", "Gemm")
MAX_ROW = (
    5000  # weights of one output beyond which their covariance is too large to invert
)
MOST_SAMPLES, FEWEST_SAMPLES = 100, 4  # gone through layer by layer
MEMORY = 3 * 2**26  # bytes that what is kept of all these samples may take


class FloatStatistics:
    """An `CalibrationCallback` of calibration that notes what these stages need.

    Of channels, something of every sample, of those at even and at odd places apart; of layers, the outputs for samples at equal
    distances, as many as memory allows.
    """

    def __init__(self, model: ir.Model, stages: RefineOptions, samples: int) -> None:
        self.channels: dict[str, tuple[Channels, Channels]] = {}
        self.layers: dict[str, list[Array]] = {}  # by sample: outputs [places, O]
        self._samples: dict[int, Sample] = {}
        self._chosen = frozenset(
            evenly_spaced(samples, _count(model, samples)) if stages.layers else ()
        )
        self._watched = frozenset(watched(model) if stages.scales else ())
        self._counted = frozenset(map(name_of, candidates(model)))
        if stages.layers:
            refined = (
                name_of(node.outputs[0])
                for node in model.graph
                if _can_be_refined(node)
            )
            self.layers = {name: [] for name in refined}

    @property
    def samples(self) -> list[Sample]:
        """Those that `layers` is about, in order."""
        return list(self._samples.values())

    def see(self, index: int, sample: Sample, name: str, seen: ObservedTensor) -> None:
        """One value of one run of the float model."""
        if name in self._watched:
            if name not in self.channels:
                count = seen.few.shape[1]
                self.channels[name] = Channels.of(count), Channels.of(count)
            half = self.channels[name][index % 2]
            if name in self._counted:
                half.add(seen)
            else:
                half.add_spread(seen)
        if index in self._chosen:
            self._samples[index] = sample
            if name in self.layers:
                self.layers[name].append(_at_chosen_places(seen.values))


def _at_chosen_places(values: Array) -> Array:
    """[places, O] of a layer's outputs [1,O,H,W], or [N,O]."""
    image = values[0].transpose(1, 2, 0) if values.ndim == 4 else values[:, None, :]
    return np.array(image[chosen_places(*image.shape[:2])]).reshape(-1, image.shape[-1])


def _count(model: ir.Model, samples: int) -> int:
    """How many samples to go through layer by layer."""
    layers = [node for node in model.graph if _can_be_refined(node)]
    noted = sum(
        4 * _places(shape_of(node.outputs[0])) * shape_of(node.outputs[0])[1]
        for node in layers
    )
    largest = max(
        (math.prod(shape_of(node.inputs[0])) for node in layers), default=0
    )  # as integers, one after another
    return min(
        MOST_SAMPLES,
        max(FEWEST_SAMPLES, MEMORY // max(noted + 2 * largest, 1)),
        samples,
    )


def _places(shape: tuple[int, ...]) -> int:
    """How many of them are chosen of a layer's outputs [1,O,H,W], or [N,O]."""
    sides = (shape[0], 1) if len(shape) == 2 else shape[2:]
    return math.prod(
        len(range(size)[some])
        for size, some in zip(sides, chosen_places(*sides), strict=True)
    )


def _can_be_refined(node: ir.Node) -> bool:
    """One image a sample, and no more weights to an output than can be weighed against each other."""
    if (
        node.op_type not in LAYERS
        or node.inputs[1] is None
        or node.inputs[1].const_value is None
    ):
        return False
    output, inner = shape_of(node.outputs[0]), shape_of(node.inputs[1])[1:]
    return (node.op_type == "Gemm" or output[0] == 1) and int(np.prod(inner)) <= MAX_ROW
