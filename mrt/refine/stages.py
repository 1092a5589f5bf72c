"""What is decided on samples between calibrating and quantising."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import onnx_ir as ir
from threadpoolctl import threadpool_limits

from mrt.quantize import QuantizeOptions
from mrt.quantize.channel_centres import centrable
from mrt.quantize.graph import GraphLowering
from mrt.refine.equalize import SECOND_ORDER, with_channels
from mrt.refine.float_notes import FloatStatistics
from mrt.refine.options import RefineOptions
from mrt.refine.sequential import Progress, Sequential
from mrt.table.decisions import Decisions
from mrt.table.table import CalibrationTable


def refine(
    model: ir.Model,
    table: CalibrationTable,
    options: QuantizeOptions,
    stages: RefineOptions,
    notes: FloatStatistics,
    progress: Progress,
) -> CalibrationTable:
    """The table with what the stages decide, for a program with these options. The notes are from these stages too.

    Products of matrices have one thread, so that their sums are added in one order however many processors there are.
    """
    decisions = Decisions(options.key())
    with threadpool_limits(limits=1, user_api="blas"):
        if stages.scales:
            left = SECOND_ORDER if stages.weights else 1.0
            centred = centrable(model.graph) if stages.centres else frozenset()
            decisions = with_channels(
                decisions, model, table, options, notes.channels, left, centred
            )
        if stages.layers:
            with ThreadPoolExecutor(os.cpu_count()) as pool:
                sequential = Sequential(notes, stages, progress, pool)
                lowering = GraphLowering(
                    model, replace(table, decisions=decisions), options
                )
                layer = lowering.next_layer()
                while layer is not None:
                    layer = lowering.next_layer(sequential(lowering, layer))
            decisions = replace(decisions, layers=sequential.decisions)
    return replace(table, decisions=decisions)
