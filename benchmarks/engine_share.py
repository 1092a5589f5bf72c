"""Times a program of ours beside onnxruntime in float32: one sample, one thread each, taking turns."""

from __future__ import annotations

from pathlib import Path
from statistics import median

import onnx_ir as ir
import onnxruntime

import cvm
from benchmarks.measure import Turn, alternate, warmed
from mrt.calibrate.samples import Sample

ROUNDS = 30


def engine_share(model: ir.Model, program: Path, sample: Sample) -> float:
    """Return the engine's median time over that of the float model."""
    executable = cvm.load(program)
    integers = executable.quantize(sample)
    session = _one_thread(model)
    feeds = {port.name: sample[port.name] for port in session.get_inputs()}
    turns = {
        "engine": Turn(warmed(lambda: executable.run(integers)), ROUNDS),
        "float": Turn(warmed(lambda: session.run(None, feeds)), ROUNDS),
    }
    readings = alternate(turns, ROUNDS)
    return median(readings["engine"]) / median(readings["float"])


def _one_thread(model: ir.Model) -> onnxruntime.InferenceSession:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    return onnxruntime.InferenceSession(
        ir.to_proto(model).SerializeToString(),
        options,
        providers=["CPUExecutionProvider"],
    )
