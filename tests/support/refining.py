"""Refines a table over samples, as `mrt convert` does.

The table is one that a test made.
"""

import onnx_ir as ir

from mrt.calibrate.collect import calibrate
from mrt.calibrate.samples import Samples
from mrt.quantize import QuantizeOptions
from mrt.refine import FloatStatistics, RefineOptions
from mrt.refine import refine as refine_with
from mrt.table.table import CalibrationOptions, CalibrationTable


def refine(
    model: ir.Model,
    table: CalibrationTable,
    options: QuantizeOptions,
    stages: RefineOptions,
    samples: Samples,
    notes: list[str] | None = None,
) -> CalibrationTable:
    """Return the table with the decisions of the stages; what cannot be decided is noted."""
    statistics = FloatStatistics(model, stages, len(samples))
    calibrate(
        model,
        samples,
        CalibrationOptions("minmax"),
        model_sha256="",
        callbacks=[statistics],
    )
    return refine_with(
        model, table, options, stages, statistics, lambda *_: None, notes
    )
