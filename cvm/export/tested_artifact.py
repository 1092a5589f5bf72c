"""Exports that a script of Python tests: it runs a sample and compares the digests of the answers."""

from __future__ import annotations

from collections.abc import Mapping

from cvm import __version__
from cvm.export.artifact import Artifact
from cvm.export.samples import samples_of, stored
from cvm.export.templates import filled, rows_of
from cvm.file.format import program_id
from cvm.program import IntArray
from cvm.proof.validate import Proven
from cvm.reference import interpreter
from cvm.runtime.receipt import digests_of


def tested_artifact(
    form: Proven,
    target: str,
    base: str,
    written: Artifact,
    texts: Mapping[str, str] | None = None,
) -> Artifact:
    """What a target has written, and beside it a sample, test.py and README.

    `texts` fill places of the templates that only this target has.
    """
    samples = samples_of(form.program)
    outputs = form.program.outputs
    dtypes = [form.types[port.value].dtype for port in outputs]
    values = {
        "NAME": base,
        "VERSION": __version__,
        "PROGRAM": program_id(form.program),
        "DTYPES": ", ".join(f'"{dtype}"' for dtype in dtypes),
        "DIGESTS": _digest_lines(form, samples),
        "FACTS": rows_of(written.facts),
        **(texts or {}),
    }
    return Artifact(
        {
            **written.files,
            "test.py": filled(target, "test.py.txt", values),
            "README.md": filled(target, "README.md", values),
        },
        written.facts,
        {**written.binaries, "sample.npz": stored(list(samples.values()))},
    )


def _digest_lines(form: Proven, samples: Mapping[str, IntArray]) -> str:
    """A line of Python for each output: the digest of what the reference machine answers."""
    digests = digests_of(interpreter.run(form, samples))
    names = [output.name for output in form.program.outputs]
    return "\n".join(f'    "{digests[name].hex()}",' for name in names)
