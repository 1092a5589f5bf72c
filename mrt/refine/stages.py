"""The second look at the samples, between calibrating and quantising."""

from __future__ import annotations

import math
from dataclasses import replace

import onnx_ir as ir

from mrt.calibrate.decisions import Decisions
from mrt.calibrate.samples import Sample, Samples, evenly_spaced
from mrt.calibrate.table import CalibrationTable
from mrt.one_thread import one_thread
from mrt.quantize import QuantizeOptions, quantize
from mrt.quantize.lowering import name_of, shape_of
from mrt.refine.channels import watch_channels
from mrt.refine.equalize import SECOND_ORDER, channel_scales, watched
from mrt.refine.options import RefineOptions
from mrt.refine.sequential import LAYERS, Progress, Sequential

WATCHED = 2**29  # numbers, at most, that are looked at to learn what channels do
MOST_SAMPLES, FEWEST_SAMPLES = 100, 4  # gone through layer by layer
MEMORY = 256 * 2**20  # bytes that the inputs of all layers of all these samples may take


@one_thread()
def refine(
    model: ir.Model,
    table: CalibrationTable,
    options: QuantizeOptions,
    stages: RefineOptions,
    samples: Samples,
    progress: Progress,
) -> CalibrationTable:
    """The table with what the stages decide, for a program with these options."""
    decisions = Decisions(options.key())
    if stages.scales:
        left = SECOND_ORDER if stages.weights else 1.0
        scales = _channel_scales(model, table, options, left, samples, progress)
        decisions = replace(decisions, channel_scales=scales)
    if stages.layers:
        sequential = Sequential(model, _some(model, samples), stages, progress)
        quantize(model, replace(table, decisions=decisions), options, rounding=sequential)
        decisions = replace(decisions, layers=sequential.decisions)
    return replace(table, decisions=decisions)


def _channel_scales(
    model: ir.Model,
    table: CalibrationTable,
    options: QuantizeOptions,
    left: float,
    samples: Samples,
    progress: Progress,
) -> dict[str, tuple[float, ...]]:
    names = watched(model)
    if not names:
        return {}
    largest = {name: max(abs(table.ranges[name].min), abs(table.ranges[name].max)) for name in names}

    sizes = {name_of(value): math.prod(shape_of(value)) for node in model.graph for value in node.outputs}
    count = max(FEWEST_SAMPLES, WATCHED // max(sum(sizes[name] for name in names), 1))
    chosen = _evenly(samples, min(count, len(samples)))

    def report(done: int) -> None:
        progress("equalizing channels", done, len(chosen))

    return channel_scales(model, table, options, watch_channels(model, chosen, largest, report), left)


def _some(model: ir.Model, samples: Samples) -> list[Sample]:
    """Samples at equal distances, as many as memory allows."""
    inputs = [node.inputs[0] for node in model.graph if node.op_type in LAYERS]
    size = sum(math.prod(shape_of(value)) for value in inputs)
    count = min(MOST_SAMPLES, max(FEWEST_SAMPLES, MEMORY // max(size, 1)), len(samples))
    return _evenly(samples, count)


def _evenly(samples: Samples, count: int) -> list[Sample]:
    """So many samples at equal distances."""
    chosen = frozenset(evenly_spaced(len(samples), count))
    return [sample for index, sample in enumerate(samples) if index in chosen]
