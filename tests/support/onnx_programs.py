"""Exported ONNX, run by onnxruntime."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import onnx
import onnxruntime

from cvm.export.onnx.model import model_of
from cvm.program import IntArray
from cvm.proof.validate import Proven
from cvm.reference.interpreter import run as run_reference


def session_of(model: onnx.ModelProto) -> onnxruntime.InferenceSession:
    """Return a session on the processor, silent but for errors."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )


def differing(
    form: Proven,
    sample: Mapping[str, IntArray],
    model: onnx.ModelProto | None = None,
) -> list[str]:
    """Return the names of outputs whose dtype, shape or integers are not those of the reference."""
    session = session_of(model or model_of(form))
    found = session.run(None, dict(sample))
    expected = run_reference(form, sample)
    return [
        item.name
        for item, array in zip(form.program.outputs, found, strict=True)
        if not _same(array, expected[item.name])
    ]


def _same(found: IntArray, expected: IntArray) -> bool:
    return found.dtype == expected.dtype and np.array_equal(found, expected)
