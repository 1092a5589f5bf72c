"""The files of an export to ONNX: the model, a sample, a test of both, README."""

from __future__ import annotations

from cvm import __version__
from cvm.errors import BadInput
from cvm.export.artifact import Artifact
from cvm.export.c.identifiers import base_name
from cvm.export.onnx.model import model_of
from cvm.export.samples import sample, stored
from cvm.export.templates import filled, rows_of
from cvm.file.format import program_id
from cvm.proof.validate import Proven
from cvm.reference import interpreter
from cvm.runtime.receipt import digests_of

MOST_CONSTANT_BYTES = (
    2**30
)  # protobuf's files end at 2^31 bytes; weights may be stored in two orders


def write(form: Proven, name: str) -> Artifact:
    """The program as ONNX, answering with the bytes of the reference machine."""
    _require_small_constants(form)
    base, model = base_name(name), model_of(form)
    data = model.SerializeToString(deterministic=True)
    samples = {
        port.name: sample(port, number)
        for number, port in enumerate(form.program.inputs)
    }
    digests = digests_of(interpreter.run(form, samples))
    facts = {
        "instructions": len(form.program.instructions),
        "nodes": len(model.graph.node),
        "model_bytes": len(data),
    }
    values = {
        "NAME": base,
        "VERSION": __version__,
        "PROGRAM": program_id(form.program),
        "DIGESTS": "\n".join(
            f'    "{digests[port.name].hex()}",'
            for port in form.program.outputs
        ),
        "FACTS": rows_of(facts),
    }
    return Artifact(
        {
            "test.py": filled("onnx", "test.py.txt", values),
            "README.md": filled("onnx", "README.md", values),
        },
        facts,
        {f"{base}.onnx": data, "sample.npz": stored(list(samples.values()))},
    )


def _require_small_constants(form: Proven) -> None:
    """Raise `BadInput` where the model would not be one protobuf message."""
    size = sum(array.nbytes for array in form.program.constants)
    if size > MOST_CONSTANT_BYTES:
        raise BadInput(
            f"the constants have {size:,} bytes; the target onnx takes at most {MOST_CONSTANT_BYTES:,}"
        )
