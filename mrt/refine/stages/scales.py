"""`scales`: chooses one scale for each channel of a value between layers.

A value can have them where its readers can absorb the difference between channels
(cross-layer equalization). A convolution absorbs the difference in its weights, which
then differ more in size themselves. So the scales follow only part of the difference:
each value has the power of it with the least expected noise behind its readers. Nagel
et al., arXiv 1906.04721, use half of it; SmoothQuant, arXiv 2211.10438, chooses one
power for a whole model.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import onnx_ir as ir

from mrt.graph.canonical_values import name_of, shape_of
from mrt.quantize.curves.gate import comes_from_gates
from mrt.refine.channel_statistics import Floats
from mrt.refine.channel_thresholds import clipping_thresholds
from mrt.refine.reader_noise import (
    LEAST_IMPROVEMENT,
    ReaderNoise,
    equalizable_values,
)
from mrt.refine.stages.stage import ChannelState, Needs, RefineStage
from mrt.table.table import MOST_RELATIVE

TINY = 1e-30
LEAST_SCALE = 1 / 64  # the least scale of a channel, over the value's own
LEAST_SCALE_OF_GATES = 1 / 1024  # a gate keeps most channels between -0.3 and 0


def decide(state: ChannelState) -> ChannelState:
    """Choose scales, relative to the value's, for each value that gains by them."""
    scales: dict[str, tuple[float, ...]] = {}
    for value in equalizable_values(state.model, state.table, state.options):
        relative = _relative_scales(state, value)
        if relative is not None:
            scales[name_of(value)] = tuple(relative.tolist())
    decisions = replace(state.decisions, channel_scales=scales)
    return replace(state, decisions=decisions)


def _relative_scales(state: ChannelState, value: ir.Value) -> Floats | None:
    """Return scales [C] over the value's, as float16, which is how the table's file stores them.

    None if the value gains nothing by them.
    """
    name = name_of(value)
    measured = state.table.ranges[name]
    magnitude = measured.clipped_magnitude
    bits = max(state.options.product_bits_of(name), 8)
    steps = state.options.steps_from_zero(bits, negative=measured.min < 0)
    noise = ReaderNoise(
        value, state.statistics, state.residual_share, state.options
    )
    # The value may be clipped within its measured range; a dominant channel need not be.
    largest = measured.magnitude
    gates = comes_from_gates(value)
    least = LEAST_SCALE_OF_GATES if gates else LEAST_SCALE
    bounds = least * magnitude, largest
    thresholds = clipping_thresholds(
        state.statistics[name],
        state.halves[name],
        centres=_centres(state, value),
        steps=steps,
        importance=noise.importance,
        bounds=bounds,
    )
    relative = thresholds / magnitude
    if state.options.scheme == "affine":
        relative = np.maximum(relative, _least_affine(state, name))
    greatest = relative.max()
    difference = relative / greatest
    power = noise.best_power(difference, greatest * magnitude / steps)
    if power == 0 and greatest >= LEAST_IMPROVEMENT:
        return None
    chosen = np.minimum(greatest * difference**power, MOST_RELATIVE / 2)
    return np.asarray(chosen.astype(np.float16).astype(np.float64))


def _least_affine(state: ChannelState, name: str) -> Floats:
    """Return the least scales [C], over the value's, at which an affine format reaches both ends of each channel.

    Its zero point divides each channel's integers as it divides the value's.
    """
    measured, channels = state.table.ranges[name], state.statistics[name]
    high = np.maximum(channels.maximum, 0) / max(measured.max, TINY)
    low = np.minimum(channels.minimum, 0) / min(measured.min, -TINY)
    return np.minimum(np.maximum(high, low), 1.0)


def _centres(state: ChannelState, value: ir.Value) -> Floats:
    centres = state.decisions.centres.get(name_of(value))
    if centres is None:
        return np.zeros(shape_of(value)[1])
    return np.array(centres)


SCALES = RefineStage("scales", Needs.CHANNELS, decide)
