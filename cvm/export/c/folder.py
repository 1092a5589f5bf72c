"""The files of an export to C: header, source, self-test, Makefile, README."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.resources import files
from string import Template

from cvm import __version__
from cvm.errors import BadInput
from cvm.export.artifact import Artifact
from cvm.export.c import selftest
from cvm.export.c.identifiers import base_name
from cvm.export.c.source import Source
from cvm.file.format import program_id
from cvm.proof.validate import Proven

MAX_ELEMENTS = 2**29  # of a value, so that 32 bits hold every index


def write(form: Proven, name: str) -> Artifact:
    """The program as C99, answering with the bytes of the reference machine."""
    _require_indexable(form)
    base = base_name(name)
    source = Source.of(form)
    ports = source.ports
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
        "FACTS": "\n".join(
            f"| {k.replace('_', ' ')} | {v:,} |" for k, v in facts.items()
        ),
    }
    return Artifact(
        {
            f"{base}.h": _filled("header.h", names | ports.declarations()),
            f"{base}.c": _filled("source.c", names | source.texts(base)),
            "main.c": _filled("main.c", names | selftest.texts(form, ports)),
            "Makefile": _filled("Makefile", names),
            "README.md": _filled("README.md", names),
        },
        facts,
    )


def _require_indexable(form: Proven) -> None:
    for number, type_ in enumerate(form.types):
        if type_.elements > MAX_ELEMENTS:
            raise BadInput(
                f"%{number} is {type_}: the target c takes values of at most {MAX_ELEMENTS} elements"
            )


def _filled(name: str, values: Mapping[str, str]) -> str:
    place = files("cvm.export.c").joinpath("templates", name)
    return Template(place.read_text(encoding="ascii")).substitute(values)
