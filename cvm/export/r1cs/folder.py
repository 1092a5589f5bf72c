"""The files of an export to constraints: the circuit, the witness of a sample, README."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence

from cvm import __version__
from cvm.export.artifact import Artifact
from cvm.export.c.identifiers import base_name
from cvm.export.r1cs import files
from cvm.export.r1cs.circuit import Circuit, circuit_of
from cvm.export.r1cs.disclosure import ID_WORDS, Disclosure, words_for
from cvm.export.samples import samples_of
from cvm.export.templates import filled
from cvm.file.format import program_id
from cvm.proof.validate import Proven


def write(form: Proven, name: str, public: Sequence[str] = ()) -> Artifact:
    """The program as rows a * b = c, and the witness that it runs to on a fixed sample; `public` names inputs and outputs."""
    shown = Disclosure.chosen(form.program, public)
    base = base_name(name)
    samples = samples_of(form.program)
    circuit = circuit_of(form, samples, shown)
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
        "POWER": str(power_of(circuit)),
        "PUBLIC": _described(form, shown),
        "OPTIONS": "".join(f" --public {shlex.quote(x)}" for x in public),
        "FACTS": "\n".join(f"| {k} | {v:,} |" for k, v in facts.items()),
    }
    return Artifact(
        {"README.md": filled("r1cs", "README.md", values)},
        facts,
        {
            f"{base}.r1cs": files.r1cs(circuit),
            "sample.wtns": files.witness(circuit),
        },
    )


def power_of(circuit: Circuit) -> int:
    """The exponent of the powers of tau that a setup of this circuit needs: snarkjs adds a row for each public signal."""
    return max((circuit.system.rows + circuit.public).bit_length(), 8)


def _described(form: Proven, shown: Disclosure) -> str:
    """A line for each group of public signals, by their numbers."""
    lines: list[str] = []
    first = 1
    for meaning, count in _groups(form, shown):
        last = first + count - 1
        numbers = f"{first} to {last}" if count > 1 else str(first)
        lines.append(f"| {numbers} | {meaning} |")
        first = last + 1
    return "\n".join(lines)


def _groups(form: Proven, shown: Disclosure) -> Iterator[tuple[str, int]]:
    """The meaning of each group of signals, and their number."""
    program = form.program
    yield "the program id, as words of 32 bits", ID_WORDS
    meaning = "which outputs and inputs are public, a bit each"
    yield meaning, words_for(len(program.inputs) + len(program.outputs))
    named_types = [
        *((port.name, form.types[port.value]) for port in program.outputs),
        *((port.name, port.type) for port in program.inputs),
    ]
    for (name, type_), public in zip(
        named_types, (*shown.outputs, *shown.inputs), strict=True
    ):
        if public:
            yield f"{name}, {type_}", type_.elements
        else:
            yield f"the commitment of {name}, {type_}", 1
