"""Programs of small float models, calibrated on made-up samples."""

from collections.abc import Mapping

import onnx_ir as ir

from cvm.proof.validate import Proven, validate
from mrt.calibrate.collect import calibrate
from mrt.calibrate.samples import synthetic_samples
from mrt.quantize import QuantizeOptions, quantize
from mrt.table.table import CalibrationOptions


def calibrated_program(
    graph: ir.Model,
    inputs: Mapping[str, tuple[int, ...]],
    options: QuantizeOptions | None = None,
) -> Proven:
    """Return the proven program of a model as it stands, with nothing refined."""
    samples = synthetic_samples(dict(inputs), 40, 0)
    table = calibrate(
        graph, samples, CalibrationOptions(), model_sha256="0" * 64
    )
    return validate(quantize(graph, table, options or QuantizeOptions()))
