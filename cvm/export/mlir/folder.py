"""The files of an export to MLIR: the module, a sample, a test of both, README."""

from __future__ import annotations

from collections.abc import Mapping
from io import BytesIO

import numpy as np

from cvm import __version__
from cvm.export.artifact import Artifact
from cvm.export.c.identifiers import base_name
from cvm.export.mlir.meaning import CALIBRATED, Ranges
from cvm.export.mlir.model import NO_RANGES, module_of
from cvm.export.samples import sample
from cvm.export.templates import filled, rows_of
from cvm.file.format import program_id
from cvm.program import IntArray, TensorType
from cvm.proof.validate import Proven
from cvm.reference import interpreter
from cvm.runtime.receipt import digests_of


def write(form: Proven, name: str, ranges: Ranges = NO_RANGES) -> Artifact:
    """The program as MLIR, answering with the bytes of the reference machine."""
    base, program, text = base_name(name), form.program, module_of(form, ranges)
    samples = {
        port.name: sample(port, number)
        for number, port in enumerate(program.inputs)
    }
    facts = {
        "instructions": len(program.instructions),
        "operations": text.count(" = "),
        "model_bytes": len(text),
    }
    if ranges:
        facts["calibrated_ranges"] = text.count(f"{CALIBRATED} = ")
    values = {
        "NAME": base,
        "VERSION": __version__,
        "PROGRAM": program_id(program),
        "DTYPES": ", ".join(f'"{dtype}"' for dtype in _dtypes(form)),
        "DIGESTS": _digests(form, samples),
        "FACTS": rows_of(facts),
        "INPUTS": _rows([(port.name, port.type) for port in program.inputs]),
        "OUTPUTS": _rows(
            [(port.name, form.types[port.value]) for port in program.outputs]
        ),
    }
    return Artifact(
        {
            f"{base}.mlir": text,
            "test.py": filled("mlir", "test.py.txt", values),
            "README.md": filled("mlir", "README.md", values),
        },
        facts,
        {"sample.npz": _npz(list(samples.values()))},
    )


def _dtypes(form: Proven) -> list[str]:
    """The dtypes of the outputs, in order."""
    return [form.types[output.value].dtype for output in form.program.outputs]


def _digests(form: Proven, samples: Mapping[str, IntArray]) -> str:
    """A line of Python for each output."""
    digests = digests_of(interpreter.run(form, samples))
    names = [output.name for output in form.program.outputs]
    return "\n".join(f'    "{digests[name].hex()}",' for name in names)


def _rows(ports: list[tuple[str, TensorType]]) -> str:
    """Lines of a table: MLIR's functions have no names for arguments, so their places stand for them."""
    rows = [
        f"| {place} | {name} | {type_} |"
        for place, (name, type_) in enumerate(ports)
    ]
    return "\n".join(rows)


def _npz(arrays: list[IntArray]) -> bytes:
    """The inputs in order: arr_0, arr_1, ..."""
    buffer = BytesIO()
    np.savez(buffer, *arrays)
    return buffer.getvalue()
