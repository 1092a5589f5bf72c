"""The type of a stage of refinement, and the states that stages read and change.

A stage has a name, the statistics that it needs before it can decide (`needs`), and a
function from a state to the same state with its decisions made (`decide`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field
from enum import Enum
from typing import Generic, TypeVar

import onnx_ir as ir

from mrt.calibrate.samples import Samples
from mrt.calibrate.session import Array
from mrt.quantize import QuantizeOptions
from mrt.quantize.rounding import RoundedLayer, WeightedLayer, nearest
from mrt.refine.channel_statistics import ChannelStatistics
from mrt.refine.columns import LayerInputs
from mrt.refine.moments import Moments
from mrt.table.decisions import Decisions
from mrt.table.table import CalibrationTable

State = TypeVar("State")
FLOAT_BYTES = 8
MOST_COVARIANCE = 2**28
"""The most bytes of a layer's covariance, of which a stage holds several copies."""

Halves = tuple[ChannelStatistics, ChannelStatistics]
"""The statistics over one half of the samples, and over the other half."""


class Needs(Enum):
    """The statistics that must have been gathered before a stage can decide."""

    SAMPLES = "some samples, before the model is calibrated"
    CHANNELS = "the statistics of the channels of float values"
    LAYERS = (
        "float's outputs of each layer, and the integers that the layer takes"
    )


@dataclass(frozen=True)
class RefineStage(Generic[State]):
    """One decision; `requires` names a stage without which this one has no effect."""

    name: str
    needs: Needs
    decide: Callable[[State], State]
    requires: str | None = None


class TooLarge(Exception):
    """What a stage needs for a layer would take too much memory."""


@dataclass(frozen=True, eq=False)
class ModelState:
    """The float model before calibration, with the channels duplicated in it (`duplicates`).

    `scales_by_channel`: whether channels will have scales of their own. `extra_products`:
    the share of products that duplicates may add, if the user says so. `table` has the
    scales of channels, if they are known. `notes` are sentences for the user.
    """

    model: ir.Model
    samples: Samples
    options: QuantizeOptions
    scales_by_channel: bool
    extra_products: float | None = None
    table: CalibrationTable | None = None
    duplicates: Mapping[str, Sequence[int]] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class ChannelState:
    """The values between layers of a calibrated model, with the channels' `decisions`.

    `residual_share` is the share of the noise of nearest weights that remains after the
    later rounding of the weights.
    """

    model: ir.Model
    table: CalibrationTable
    options: QuantizeOptions
    halves: Mapping[str, Halves]
    statistics: Mapping[str, ChannelStatistics]
    residual_share: float
    decisions: Decisions


@dataclass(frozen=True, eq=False)
class LayerState:
    """One layer of the walk, and the decisions made for it so far.

    `inputs` are the integers that the layer takes, `outputs` are those of the float
    model [places, O] for each sample. `moments` are those of the inputs, until they are used
    up, and `rounded` are the weights as integers, each None until a stage computes them.
    """

    layer: WeightedLayer
    table: CalibrationTable
    options: QuantizeOptions
    inputs: LayerInputs
    outputs: Sequence[Array]
    pool: Executor
    moments: Moments | None = None
    rounded: RoundedLayer | None = None

    def rounded_layer(self) -> RoundedLayer:
        """Return the weights as a stage rounded them, or the nearest integers."""
        if self.rounded is not None:
            return self.rounded
        return nearest(self.layer, self.table, self.options)

    def require_covariance(self) -> None:
        """TooLarge if the covariance of the inputs would take more than MOST_COVARIANCE bytes."""
        length = math.prod(self.layer.weights.shape[1:])
        size = FLOAT_BYTES * self.inputs.groups * length**2
        if size > MOST_COVARIANCE:
            raise TooLarge(
                f"its covariance would take {size:,} bytes, more than {MOST_COVARIANCE:,}"
            )

    def in_halves(self, blocks: range, add: Callable[[int, int], None]) -> None:
        """Call `add(half, block)` with every other block for half 0 and for half 1.

        The halves run at the same time; each adds its own numbers in its own order.
        """

        def add_half(half: int) -> None:
            for block in blocks[half::2]:
                add(half, block)

        other = self.pool.submit(add_half, 1)
        add_half(0)
        other.result()
