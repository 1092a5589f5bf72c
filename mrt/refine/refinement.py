"""Runs the chosen stages of refinement: first for the model, then for channels, then layers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import lru_cache, partial

import onnx_ir as ir
from threadpoolctl import threadpool_limits

from mrt.calibrate.samples import Samples
from mrt.quantize import QuantizeOptions
from mrt.quantize.graph import GraphLowering
from mrt.refine.channel_statistics import ChannelStatistics
from mrt.refine.float_statistics import FloatStatistics
from mrt.refine.options import RefineOptions
from mrt.refine.stages import (
    CHANNEL_STAGES,
    LAYER_STAGES,
    MODEL_STAGES,
    ChannelState,
    Halves,
    ModelState,
    Needs,
)
from mrt.refine.walker import ProgressCallback, decide_layers
from mrt.table.decisions import Decisions
from mrt.table.table import CalibrationTable

SECOND_ORDER = 0.4
"""The measured share of the noise of nearest weights that second-order rounding leaves."""

MERGED_AT_ONCE = 32
"""Values whose statistics over all samples are kept."""


def refine_model(
    model: ir.Model,
    samples: Samples,
    options: QuantizeOptions,
    stages: RefineOptions,
    table: CalibrationTable | None = None,
) -> ModelState:
    """Run the stages that change the model before it is calibrated, and return what they decided.

    `table`: that of a calibration of the unchanged model, where there was one.
    """
    state = ModelState(
        model,
        samples,
        options,
        scales_by_channel=stages.runs("scales"),
        extra_products=stages.extra_products,
        table=table,
    )
    for stage in MODEL_STAGES:
        if stages.runs(stage.name):
            state = stage.decide(state)
    return state


def refine(
    model: ir.Model,
    table: CalibrationTable,
    options: QuantizeOptions,
    stages: RefineOptions,
    statistics: FloatStatistics,
    progress: ProgressCallback,
    notes: list[str] | None = None,
) -> CalibrationTable:
    """Return the table with the decisions of the stages, for a program with these options.

    The statistics must have been gathered for these stages, and are used up. What cannot
    be decided is noted. Products of matrices have one thread, so that their sums are added
    in one order however many processors there are.
    """
    table = replace(table, decisions=Decisions(options.key()))
    with threadpool_limits(limits=1, user_api="blas"):
        if stages.need(Needs.CHANNELS):
            table = _with_channels(
                model, table, options, stages=stages, statistics=statistics
            )
            statistics.channels = {}  # makes room for the layers
        if stages.need(Needs.LAYERS):
            chosen = [
                stage for stage in LAYER_STAGES if stages.runs(stage.name)
            ]
            lowering = GraphLowering(model, table, options)
            layers = decide_layers(
                lowering, statistics, chosen, progress, notes
            )
            table = replace(
                table, decisions=replace(table.decisions, layers=layers)
            )
    return table


def _with_channels(
    model: ir.Model,
    table: CalibrationTable,
    options: QuantizeOptions,
    *,
    stages: RefineOptions,
    statistics: FloatStatistics,
) -> CalibrationTable:
    state = ChannelState(
        model,
        table,
        options,
        halves=statistics.channels,
        statistics=_Merged(statistics.channels),
        residual_share=SECOND_ORDER if stages.runs("weights") else 1.0,
        decisions=table.decisions,
    )
    for stage in CHANNEL_STAGES:
        if stages.runs(stage.name):
            state = stage.decide(state)
    return replace(table, decisions=state.decisions)


class _Merged(Mapping[str, ChannelStatistics]):
    """The statistics over both halves, merged when they are asked for: all at once would take as much room again."""

    def __init__(self, halves: Mapping[str, Halves]) -> None:
        self._halves = halves
        # A method of this object would refer to it, and keep the halves beside the layers.
        self._merged = lru_cache(MERGED_AT_ONCE)(partial(_merged, halves))

    def __getitem__(self, name: str) -> ChannelStatistics:
        return self._merged(name)

    def __iter__(self) -> Iterator[str]:
        return iter(self._halves)

    def __len__(self) -> int:
        return len(self._halves)


def _merged(halves: Mapping[str, Halves], name: str) -> ChannelStatistics:
    return ChannelStatistics.merged(*halves[name])
