"""The files of an export to constraints: the circuit, the witness of a sample, README."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.resources import files as resources
from string import Template

from cvm import __version__
from cvm.export.artifact import Artifact
from cvm.export.c.identifiers import base_name
from cvm.export.r1cs import files
from cvm.export.r1cs.circuit import circuit_of
from cvm.export.samples import sample
from cvm.file.format import program_id
from cvm.proof.validate import Proven


def write(form: Proven, name: str) -> Artifact:
    """The program as rows a * b = c, and the witness that it runs to on a fixed sample."""
    base = base_name(name)
    samples = {
        item.name: sample(item, number)
        for number, item in enumerate(form.program.inputs)
    }
    circuit = circuit_of(form, samples)
    facts = {
        "constraints": circuit.system.rows,
        "wires": circuit.system.wires,
        "public": circuit.public,
        "private": circuit.private,
    }
    values = {
        "NAME": base,
        "VERSION": __version__,
        "PROGRAM": program_id(form.program),
        "POWER": str(power_of(circuit.system.rows)),
        "PUBLIC": _described(form),
        "FACTS": "\n".join(f"| {k} | {v:,} |" for k, v in facts.items()),
    }
    return Artifact(
        {"README.md": _filled("README.md", values)},
        facts,
        {
            f"{base}.r1cs": files.r1cs(circuit),
            "sample.wtns": files.witness(circuit),
        },
    )


def power_of(rows: int) -> int:
    """The exponent of the powers of tau that a setup of so many rows needs."""
    return max((2 * rows).bit_length(), 8)


def _described(form: Proven) -> str:
    """A line for each public signal, by its number."""
    lines, first = ["| 1 to 8 | the program id, as words of 32 bits |"], 9
    for item in form.program.outputs:
        type_ = form.types[item.value]
        last = first + type_.elements - 1
        lines.append(f"| {first} to {last} | {item.name}, {type_} |")
        first = last + 1
    return "\n".join(lines)


def _filled(name: str, values: Mapping[str, str]) -> str:
    place = resources("cvm.export.r1cs").joinpath("templates", name)
    return Template(place.read_text(encoding="ascii")).substitute(values)
