"""One scale for each channel of a value between layers, where its readers can take up how the channels differ.

A convolution takes the difference up in its weights, which then differ more in size themselves; so the scales go only part of
the way: the power, for each value, that promises the least noise behind its readers (Nagel et al., arXiv 1906.04721, go half
of the way; SmoothQuant, arXiv 2211.10438, chooses one power for a whole model).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import onnx_ir as ir

from cvm.program import IntArray
from mrt.calibrate.table import CalibrationTable
from mrt.quantize import QuantizeOptions
from mrt.quantize.lowering import constant_of, name_of
from mrt.refine.channels import Channels, Floats
from mrt.words import ONE_RANGE

POWERS = (0.0, 0.25, 0.5, 0.75, 1.0)
LEAST_SCALE = 1 / 64  # of the whole value's
WORTH_IT = 0.98  # a power is taken for 2 % less noise or more
ROUNDING = 1 / 12  # the variance of a rounding error, in steps squared
SECOND_ORDER = 0.4  # of the noise of nearest weights is left by second-order rounding, as measured
FEWEST, FEW, TAIL = 100, 10_000, 1.56e6  # numbers seen; see _tops
SILENCE = 8  # samples; a channel silent in more may end below the largest, by as much as they are more
INDEPENDENT = 128  # numbers of one sample, at most, that tell something new about its channel
THRESHOLDS_FROM, THRESHOLDS = 1 / 12, 64  # the least threshold tried, of the largest magnitude; how many


@dataclass(frozen=True)
class _Reader:
    """A convolution that reads a value: its weights [O,C/groups,KH,KW], and the variance of all it computes."""

    weights: Floats
    groups: int
    power: float


def candidates(model: ir.Model) -> list[ir.Value]:
    """Images between layers that only convolutions and sums of two computed values read."""
    return [value for node in model.graph for value in node.outputs if _can_have_scales(value)]


def _can_have_scales(value: ir.Value) -> bool:
    uses = list(value.uses())
    if not uses or value.is_graph_output() or value.shape is None or len(value.shape) != 4:
        return False
    convolutions = [use for use in uses if use.node.op_type == "Conv" and use.idx == 0]
    sums = [use for use in uses if use.node.op_type in ("Add", "Sub") and not any(map(_is_constant, use.node.inputs))]
    settled = bool(convolutions) or len(sums) > 1  # a single sum reads the accumulator, so that no scale is chosen
    return settled and len(convolutions) + len(sums) == len(uses) and ONE_RANGE not in value.metadata_props


def _is_constant(value: ir.Value | None) -> bool:
    return constant_of(value) is not None


def watched(model: ir.Model) -> list[str]:
    """The values whose channels must be known: the candidates, and what their readers compute."""
    values = candidates(model)
    behind = (output for value in values for use in value.uses() for output in use.node.outputs)
    return sorted({name_of(value) for value in (*values, *behind)})


def channel_scales(
    model: ir.Model, table: CalibrationTable, options: QuantizeOptions, channels: Mapping[str, Channels], left: float
) -> dict[str, tuple[float, ...]]:
    """For each value that gains by them, its channels' scales relative to the whole value's: at most 1.

    `left` is the share of the noise of nearest weights that the rounding to come leaves.
    """
    chosen: dict[str, tuple[float, ...]] = {}
    for value in candidates(model):
        name = name_of(value)
        seen = table.ranges[name]
        if options.activation_bits_of(name) > 8 or seen.max == seen.min:
            continue
        steps = 255 if seen.min >= 0 else 127
        whole = max(abs(seen.lo), abs(seen.hi))
        tops = _tops(channels[name], steps)
        full = np.clip(tops / whole, LEAST_SCALE, 1.0)
        best = _best_power(value, full, whole / steps, channels, left)
        if best > 0:
            chosen[name] = tuple((full**best).astype(np.float16).astype(np.float64).tolist())  # short in the file
    return chosen


def _best_power(value: ir.Value, full: Floats, step: float, channels: Mapping[str, Channels], left: float) -> float:
    readers = [_reader(use.node, channels) for use in value.uses() if use.node.op_type == "Conv"]
    sums = [use.node.outputs[0] for use in value.uses() if use.node.op_type != "Conv"]
    variance = channels[name_of(value)].variance
    best, least = 0.0, np.inf
    for power in POWERS:
        relative = full**power
        noise = sum(_noise(reader, relative, step, variance, left) for reader in readers)
        for behind in sums:
            noise += ROUNDING * float(((relative * step) ** 2).sum()) / _power(channels[name_of(behind)])
        if noise < least * WORTH_IT:
            best, least = power, noise
    return best


def _reader(node: ir.Node, channels: Mapping[str, Channels]) -> _Reader:
    weights = constant_of(node.inputs[1])
    assert weights is not None
    return _Reader(weights, node.attributes["group"].as_int(), _power(channels[name_of(node.outputs[0])]))


def _power(item: Channels) -> float:
    return max(float(item.variance.sum()), 1e-30)


def _noise(reader: _Reader, relative: Floats, step: float, variance: Floats, left: float) -> float:
    """Noise behind a convolution over its signal: of the value's rounding, and of its weights' rounding."""
    weights, per_group = reader.weights, reader.weights.shape[1]
    repeats = len(weights) // reader.groups

    def spread(of_channel: Floats) -> Floats:
        return np.repeat(of_channel.reshape(reader.groups, per_group), repeats, axis=0)[:, :, None, None]

    scaled = weights * spread(relative)
    of_value = ROUNDING * float(((scaled * step) ** 2).sum())
    weight_steps = np.abs(scaled).max(axis=(1, 2, 3)) / 127
    met = (spread(variance / relative**2) * np.ones_like(weights)).sum(axis=(1, 2, 3))
    of_weights = ROUNDING * left * float((weight_steps**2 * met).sum())
    return (of_value + of_weights) / reader.power


def _tops(item: Channels, steps: int) -> Floats:
    """Where each channel should end: by least squared error, or beyond the maximum where little was seen.

    Beyond by so many times the mean magnitude that clipping is rarer than rounding is coarse: for an exponential tail the
    expected square of what is clipped falls below a 12th of a step's square there. A channel that was silent may speak
    elsewhere; but its weights, that nothing has ever tested, may be so large that they spoil the others'.
    """
    centres, largest = item.centres(), np.maximum(item.high, -item.low)
    tops = largest[:, None] * np.geomspace(1.0, THRESHOLDS_FROM, THRESHOLDS)
    best = np.take_along_axis(tops, _errors(item.counts, centres, tops, steps).argmin(axis=1)[:, None], axis=1)[:, 0]
    known = max(3, min(item.elements, INDEPENDENT * item.samples))
    active = item.counts[:, 1:].sum(axis=1)
    if known < FEW:
        mean = (item.counts[:, 1:] * centres[1:]).sum(axis=1) / np.maximum(active, 1)
        best = largest + mean * max(0.0, float(np.log(TAIL / (known * np.log(known) ** 2))))
    return np.where(active < FEWEST, np.maximum(best, largest.max() * min(1.0, SILENCE / item.samples)), best)


def _errors(counts: IntArray, centres: Floats, tops: Floats, steps: int) -> Floats:
    """[C, thresholds]: squared errors of magnitudes counted [C, bins], of `tops` [C, thresholds].

    A magnitude below half a step becomes 0, one up to the top is rounded, one beyond is clipped to it.
    """
    step = tops / steps
    rounded, clipped = np.searchsorted(centres, step / 2), np.searchsorted(centres, tops, side="right")
    number, first, second = (np.pad(np.cumsum(counts * centres**power, axis=1), ((0, 0), (1, 0))) for power in range(3))

    def between(sums: Floats, start: npt.NDArray[np.int64], stop: npt.NDArray[np.int64] | None) -> Floats:
        end = sums[:, -1:] if stop is None else np.take_along_axis(sums, stop, axis=1)
        return np.asarray(end - np.take_along_axis(sums, start, axis=1))

    above = [between(sums, clipped, None) for sums in (number, first, second)]
    lost = above[2] - 2 * tops * above[1] + tops**2 * above[0]
    return np.asarray(
        np.take_along_axis(second, rounded, axis=1) + ROUNDING * step**2 * between(number, rounded, clipped) + lost
    )
