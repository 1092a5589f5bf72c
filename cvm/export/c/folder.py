"""The files of an export to C: header, source, self-test, Makefile, README."""

from __future__ import annotations

from cvm import __version__
from cvm.export.artifact import Artifact
from cvm.export.c import selftest
from cvm.export.c.identifiers import base_name
from cvm.export.c.source import Ports, Source
from cvm.export.refusals import require_small_values
from cvm.export.templates import filled, rows_of
from cvm.file.format import program_id
from cvm.proof.validate import Proven

REASON = '"an input outside its interval"'
MAX_ELEMENTS = 2**29  # of a value, so that 32 bits hold every index


def write(form: Proven, name: str) -> Artifact:
    """The program as C99, answering with the bytes of the reference machine."""
    code = library(form, name)
    base = base_name(name)
    names: dict[str, str] = {
        "NAME": base,
        "VERSION": __version__,
        "TITLE": f"Program {program_id(form.program)}",
        "FACTS": rows_of(code.facts),
        "REASON": REASON,
    }
    test = selftest.texts(form, Ports.of(form))
    return Artifact(
        {
            **code.files,
            "main.c": filled("c", "main.c", names | test),
            "Makefile": filled("c", "Makefile", names),
            "README.md": filled("c", "README.md", names),
        },
        code.facts,
    )


def library(form: Proven, name: str) -> Artifact:
    """The header and the source alone; no sample is run for them."""
    require_small_values(form, "c", MAX_ELEMENTS)
    base = base_name(name)
    source = Source.of(form)
    facts = {
        "instructions": len(form.program.instructions),
        "functions": len(source.functions),
        "constant_bytes": source.constants.size,
        "arena_bytes": sum(source.arena.parts.values()),
    }
    names: dict[str, str] = {
        "NAME": base,
        "GUARD": f"{base.upper()}_H",
        "VERSION": __version__,
        "TITLE": f"Program {program_id(form.program)}",
        "ARENA": str(facts["arena_bytes"]),
    }
    header = names | source.ports.declarations()
    return Artifact(
        {
            f"{base}.h": filled("c", "header.h", header),
            f"{base}.c": filled("c", "source.c", names | source.texts(base)),
        },
        facts,
    )
