"""The files of an export to TOSA: the graph, a sample, a test of both, README."""

from __future__ import annotations

from cvm import __version__
from cvm.export.artifact import Artifact
from cvm.export.c.identifiers import base_name
from cvm.export.samples import sample, stored
from cvm.export.templates import filled, rows_of
from cvm.export.tosa.model import graph_of
from cvm.file.format import program_id
from cvm.proof.validate import Proven
from cvm.reference import interpreter
from cvm.runtime.receipt import digests_of
from cvm.tosa.graph import to_bytes


def write(form: Proven, name: str) -> Artifact:
    """The program as a TOSA file, answering with the bytes of the reference machine."""
    base, program, graph = base_name(name), form.program, graph_of(form)
    data = to_bytes(graph)
    samples = {
        port.name: sample(port, number)
        for number, port in enumerate(program.inputs)
    }
    digests = digests_of(interpreter.run(form, samples))
    facts = {
        "instructions": len(program.instructions),
        "operators": len(graph.operators),
        "model_bytes": len(data),
    }
    dtypes = [form.types[port.value].dtype for port in program.outputs]
    values = {
        "NAME": base,
        "VERSION": __version__,
        "PROGRAM": program_id(program),
        "DTYPES": ", ".join(f'"{dtype}"' for dtype in dtypes),
        "DIGESTS": "\n".join(
            f'    "{digests[port.name].hex()}",' for port in program.outputs
        ),
        "FACTS": rows_of(facts),
    }
    return Artifact(
        {
            "test.py": filled("tosa", "test.py.txt", values),
            "README.md": filled("tosa", "README.md", values),
        },
        facts,
        {f"{base}.tosa": data, "sample.npz": stored(list(samples.values()))},
    )
