"""Compares each integer value of a program with the float value that it represents.

It measures noise and clipping.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import onnx_ir as ir

from cvm.program import IntArray, Meaning
from cvm.proof.validate import Proven
from cvm.runtime import boundary, machine
from mrt.calibrate.exposed import in_groups
from mrt.calibrate.samples import Samples
from mrt.calibrate.session import Array, FloatSession
from mrt.errors import BadData
from mrt.evaluate.compare import check_same_interface
from mrt.evaluate.reals import centres_of, factors_of, nearest_order, real_of
from mrt.evaluate.scores import Noise
from mrt.graph.masked_logits import names_behind_masks
from mrt.graph.values import GREATEST_MASK
from mrt.progress import Progress

MOST_BYTES = 3 * 2**25
"""The most bytes of float values that are compared at once; they are computed on as float64."""


@dataclass
class Layer:
    """One value of the program.

    `low` and `high` are the least and the greatest real that its integers can
    represent, in whichever channel.
    """

    number: int
    instruction: str
    source: str  # the float value's name
    dtype: str
    scale: float
    low: float
    high: float
    noise: Noise = field(default_factory=Noise)
    # The float numbers outside of what their channel can represent by more than a step.
    outside: int = 0
    count: int = 0
    # The mean of the squares by which channels scale further.
    channel_power: float = 1.0
    # It is read behind a mask, which may stop at the least number, or at the greatest.
    is_masked: bool = False

    @property
    def rounding_power(self) -> float:
        """The power of the error of numbers that are rounded to the nearest integers."""
        return self.scale**2 * self.channel_power / 12

    @property
    def snr_db(self) -> float | None:
        """Signal to noise; None where nothing differs or the signal is zero."""
        return self.noise.decibels()

    @property
    def clipped(self) -> float:
        """The share of float numbers that lie outside the interval of the integers."""
        return self.outside / max(self.count, 1)

    def compared(
        self, real: Array, integer: Array
    ) -> npt.NDArray[np.bool_] | None:
        """Where float's numbers are compared: all but masked ones that have become the least number, as is intended.

        None where all are.
        """
        if not self.is_masked:
            return None
        is_least = integer <= self.low + self.scale / 2
        is_greatest = integer >= self.high - self.scale / 2
        stopped = (real <= GREATEST_MASK) & is_least
        stopped |= (real >= -GREATEST_MASK) & is_greatest
        return np.asarray(~stopped)

    def add(self, real: Array, integer: Array, outside: int = 0) -> None:
        """Add one sample's numbers, in the same order."""
        self.noise.add(real, integer)
        self.outside += outside
        self.count += real.size


# Called with a layer and one sample's numbers, float and integer, in the same order;
# and with how many of the float numbers are clipped.
LayerCallback = Callable[[Layer, Array, Array, int], None]


def compare_layers(
    model: ir.Model,
    program: Proven,
    samples: Samples,
    progress: Progress | None = None,
) -> list[Layer]:
    """Return the layers in the program's order.

    `model` is the rewritten float model from which the program was made. Raise BadData
    where the two do not belong together.
    """
    check_same_interface(model, program.program, samples)
    layers = _layers(model, program)
    if not layers:
        raise BadData(
            "the program does not say which float value any of its values stands for: it has no metadata"
        )
    watch_layers(model, program, samples, layers, Layer.add, progress)
    return layers


def watch_layers(
    model: ir.Model,
    program: Proven,
    samples: Samples,
    layers: Iterable[Layer],
    on_layer: LayerCallback,
    progress: Progress | None = None,
) -> None:
    """Run both sides over the samples, and show `on_layer` these layers of each.

    Both run once for each group of layers of which memory holds the values at once.
    """
    watched = list(layers)
    groups = groups_of_sources(model, watched)
    runs, done = machine.choose(program), 0
    for sources in groups:
        by_number = {
            layer.number: layer for layer in watched if layer.source in sources
        }
        watcher = _Watcher(program, by_number, on_layer)
        session = FloatSession(model, sources)
        for sample in samples:
            watcher.real = session.run(sample)
            integers = boundary.quantize(program.program, sample)
            runs.run(integers, observe=watcher.observe)
            done += 1
            if progress is not None:
                total = len(groups) * len(samples)
                progress("comparing layers", done, total)


def groups_of_sources(
    model: ir.Model, layers: Iterable[Layer]
) -> list[list[str]]:
    """Return the float values of layers by name, in groups of at most MOST_BYTES."""
    sources = {layer.source for layer in layers}
    values = (value for node in model.graph for value in node.outputs)
    return in_groups(
        (value for value in values if value.name in sources), MOST_BYTES
    )


@dataclass
class _Watcher:
    """Shows the wanted layers of a program, by number, beside float's values of the same sample."""

    program: Proven
    wanted: Mapping[int, Layer]
    on_layer: LayerCallback
    real: Mapping[str, Array] = field(default_factory=dict)

    def observe(self, number: int, value: IntArray) -> None:
        """Take the value of one instruction."""
        if number in self.wanted:
            layer = self.wanted[number]
            real = self.real[layer.source]
            pairs = _in_pairs(layer, self.program, real, value)
            self.on_layer(layer, *pairs)


def _layers(model: ir.Model, program: Proven) -> list[Layer]:
    """Return a layer for every value with a known float counterpart of as many elements."""
    metadata = program.program.metadata
    sizes = {
        value.name: _size(value)
        for node in model.graph
        for value in node.outputs
    }
    masked = names_behind_masks(list(model.graph))
    return [
        _layer(program, number, meaning, meaning.source in masked)
        for number, meaning in sorted(
            (metadata.values if metadata is not None else {}).items()
        )
        if number >= program.program.first_instruction
        and sizes.get(meaning.source) == program.types[number].elements
        and len(meaning.channels) in (0, program.types[number].channels)
    ]


def _layer(
    program: Proven, number: int, meaning: Meaning, is_masked: bool
) -> Layer:
    instruction = program.program.instructions[
        number - program.program.first_instruction
    ]
    low, high = _limits(program, number, meaning)
    return Layer(
        number,
        instruction.name,
        meaning.source,
        program.types[number].dtype,
        meaning.scale,
        float(low.min()),
        float(high.max()),
        channel_power=float(np.mean(factors_of(meaning) ** 2)),
        is_masked=is_masked,
    )


def _limits(
    program: Proven, number: int, meaning: Meaning
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Return the least and the greatest real of each channel, or of all at once."""
    low, high = (
        (end - meaning.zero_point) * meaning.scale * factors_of(meaning)
        + centres_of(meaning)
        for end in program.intervals[number]
    )
    return low, high


def _size(value: ir.Value) -> int | None:
    if value.shape is None or not value.shape.is_static():
        return None
    return int(np.prod(value.shape.numpy(), dtype=np.int64))


def _in_pairs(
    layer: Layer, program: Proven, real: Array, value: IntArray
) -> tuple[Array, Array, int]:
    """Return the compared numbers of both sides in one order, and how many of float's are clipped."""
    metadata = program.program.metadata
    assert metadata is not None
    meaning = metadata.values[layer.number]
    integer = real_of(value, meaning)
    exact = real.astype(np.float64)
    nearest = nearest_order(exact, integer)
    low, high = _limits(program, layer.number, meaning)
    step = meaning.scale * factors_of(meaning)
    outside = (nearest < low - step) | (nearest > high + step)
    compared = layer.compared(nearest, integer)
    if compared is not None:
        nearest, integer = nearest[compared], integer[compared]
        outside = outside[compared]
    clipped = int(np.count_nonzero(outside))
    return nearest.reshape(-1), integer.reshape(-1), clipped
