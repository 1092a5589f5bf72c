"""The files of an export to MLIR: the module, a sample, a test of both, README."""

from __future__ import annotations

from cvm.export.artifact import Artifact
from cvm.export.c.identifiers import base_name
from cvm.export.mlir.meaning import CALIBRATED, Ranges
from cvm.export.mlir.model import NO_RANGES, module_of
from cvm.export.tested_artifact import tested_artifact
from cvm.program import TensorType
from cvm.proof.validate import Proven


def write(form: Proven, name: str, ranges: Ranges = NO_RANGES) -> Artifact:
    """The program as MLIR, answering with the bytes of the reference machine."""
    base, program, text = base_name(name), form.program, module_of(form, ranges)
    facts = {
        "instructions": len(program.instructions),
        "operations": text.count(" = "),
        "model_bytes": len(text),
    }
    if ranges:
        facts["calibrated_ranges"] = text.count(f"{CALIBRATED} = ")
    inputs = [(port.name, port.type) for port in program.inputs]
    outputs = [(port.name, form.types[port.value]) for port in program.outputs]
    ports = {"INPUTS": _rows(inputs), "OUTPUTS": _rows(outputs)}
    written = Artifact({f"{base}.mlir": text}, facts)
    return tested_artifact(form, "mlir", base, written, ports)


def _rows(ports: list[tuple[str, TensorType]]) -> str:
    """Lines of a table: MLIR's functions have no names for arguments, so their places stand for them."""
    rows = [
        f"| {place} | {name} | {type_} |"
        for place, (name, type_) in enumerate(ports)
    ]
    return "\n".join(rows)
