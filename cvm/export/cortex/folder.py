"""The files of an export to Cortex: the pair that its runtime loads, a sample with the digest of the answer, README."""

from __future__ import annotations

from hashlib import sha256

from cvm import __version__
from cvm.export.artifact import Artifact
from cvm.export.c.identifiers import base_name
from cvm.export.cortex import files, storage
from cvm.export.cortex.model import model_of
from cvm.export.samples import sample
from cvm.export.templates import filled, rows_of
from cvm.file.format import program_id
from cvm.proof.validate import Proven
from cvm.reference import interpreter


def write(form: Proven, name: str) -> Artifact:
    """The program for Cortex's runtime, answering with the integers of the reference machine."""
    model = model_of(form)
    nodes, heads = storage.needed(model.graph.nodes, model.heads)
    blocks = storage.blocks(nodes, heads)
    params = files.params(nodes)
    (input_,) = form.program.inputs
    integers = sample(input_, 0)
    answers = interpreter.run(form, {input_.name: integers})
    answer = files.as_output(
        [answers[port.name] for port in form.program.outputs],
        [nodes[head] for head in heads],
    )
    facts = {
        "instructions": len(form.program.instructions),
        "nodes": sum(bool(node.operator) for node in nodes),
        "parameter_bytes": len(params),
    }
    values = {
        "NAME": base_name(name),
        "VERSION": __version__,
        "PROGRAM": program_id(form.program),
        "LOW": str(input_.lo),
        "HIGH": str(input_.hi),
        "FACTS": rows_of(facts),
    }
    return Artifact(
        {
            "symbol": files.symbol(nodes, heads, blocks),
            "answer.sha256": f"{sha256(answer).hexdigest()}  answer\n",
            "README.md": filled("cortex", "README.md", values),
        },
        facts,
        {"params": params, "sample": files.as_input(integers, nodes[0])},
    )
