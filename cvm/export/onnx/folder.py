"""The files of an export to ONNX: the model, a sample, a test of both, README."""

from __future__ import annotations

from cvm.errors import BadInput
from cvm.export.artifact import Artifact
from cvm.export.c.identifiers import base_name
from cvm.export.onnx.model import model_of
from cvm.export.tested_artifact import tested_artifact
from cvm.proof.validate import Proven

MOST_CONSTANT_BYTES = (
    2**30
)  # protobuf's files end at 2^31 bytes; weights may be stored in two orders


def write(form: Proven, name: str) -> Artifact:
    """The program as ONNX, answering with the bytes of the reference machine."""
    _require_small_constants(form)
    base, model = base_name(name), model_of(form)
    data = model.SerializeToString(deterministic=True)
    facts = {
        "instructions": len(form.program.instructions),
        "nodes": len(model.graph.node),
        "model_bytes": len(data),
    }
    written = Artifact({}, facts, {f"{base}.onnx": data})
    return tested_artifact(form, "onnx", base, written)


def _require_small_constants(form: Proven) -> None:
    """Raise `BadInput` where the model would not be one protobuf message."""
    size = sum(array.nbytes for array in form.program.constants)
    if size > MOST_CONSTANT_BYTES:
        raise BadInput(
            f"the constants have {size:,} bytes; the target onnx takes at most {MOST_CONSTANT_BYTES:,}"
        )
