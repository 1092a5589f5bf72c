"""The other side: the case written as MXNet's files, read by the front end, run by onnxruntime as it stands."""

from __future__ import annotations

import json
from pathlib import Path

import onnx
import onnx_ir as ir
import onnxruntime

from mrt.errors import MrtError
from mrt.frontend.mxnet import load_mxnet
from tests.mxnet_judge.case import Answer, Case
from tests.support.mxnet_files import write_params


def convert(case: Case, folder: Path) -> ir.Model:
    """Raise what the front end raises."""
    symbol, params = folder / "case-symbol.json", folder / "case-0000.params"
    symbol.write_text(json.dumps(case.symbol))
    params.unlink(missing_ok=True)
    if case.parameters:
        write_params(params, case.parameters)
    return load_mxnet(
        symbol,
        params if case.parameters else None,
        {n: a.shape for n, a in case.inputs.items()},
    )


def run(case: Case, folder: Path) -> Answer:
    """What `mrt` says to a case. Anything but a refusal and an answer is a bug, and raised."""
    try:
        model = convert(case, folder)
    except MrtError as refusal:
        return Answer(refusal=str(refusal))
    proto = ir.to_proto(model)
    onnx.checker.check_model(proto)
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = (
        onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    )
    options.intra_op_num_threads = 1
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(
        proto.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    needed = {value.name for value in session.get_inputs()}
    feeds = {
        name: array for name, array in case.inputs.items() if name in needed
    }
    return Answer(tuple(session.run(None, feeds)))
