"""The files of an export to StableHLO: both modules, a sample, a test, README."""

from __future__ import annotations

from cvm import __version__
from cvm.errors import BadInput
from cvm.export.artifact import Artifact
from cvm.export.c.identifiers import base_name
from cvm.export.samples import sample, stored
from cvm.export.templates import filled, rows_of
from cvm.file.format import program_id
from cvm.proof.validate import Proven
from cvm.reference import interpreter
from cvm.runtime.machine import HOW_TO_GET_JAX
from cvm.runtime.receipt import digests_of


def write(form: Proven, name: str) -> Artifact:
    """The program as StableHLO, answering with the bytes of the reference machine."""
    try:
        from cvm.export.stablehlo import modules
    except ImportError:
        raise BadInput(
            f"the target stablehlo needs jax; {HOW_TO_GET_JAX}"
        ) from None
    base = base_name(name)
    portable, for_jax = modules.portable(form), modules.for_jax(form)
    samples = {
        port.name: sample(port, number)
        for number, port in enumerate(form.program.inputs)
    }
    digests = digests_of(interpreter.run(form, samples))
    facts = {
        "instructions": len(form.program.instructions),
        "module_bytes": len(portable),
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
            "test.py": filled("stablehlo", "test.py.txt", values),
            "README.md": filled("stablehlo", "README.md", values),
        },
        facts,
        {
            f"{base}.stablehlo": portable,
            f"{base}.jax": for_jax,
            "sample.npz": stored(list(samples.values())),
        },
    )
