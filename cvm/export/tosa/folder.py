"""The files of an export to TOSA: the graph, a sample, a test of both, README."""

from __future__ import annotations

from cvm.export.artifact import Artifact
from cvm.export.c.identifiers import base_name
from cvm.export.tested_artifact import tested_artifact
from cvm.export.tosa.model import graph_of
from cvm.proof.validate import Proven
from cvm.tosa.graph import to_bytes


def write(form: Proven, name: str) -> Artifact:
    """The program as a TOSA file, answering with the bytes of the reference machine."""
    base, graph = base_name(name), graph_of(form)
    data = to_bytes(graph)
    facts = {
        "instructions": len(form.program.instructions),
        "operators": len(graph.operators),
        "model_bytes": len(data),
    }
    written = Artifact({}, facts, {f"{base}.tosa": data})
    return tested_artifact(form, "tosa", base, written)
