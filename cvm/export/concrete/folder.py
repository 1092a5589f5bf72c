"""The files of an export to Concrete: the parts of client and server, a program that runs them, a sample, README."""

from __future__ import annotations

import json
from collections.abc import Mapping
from importlib.resources import files
from io import BytesIO
from typing import Any

import numpy as np

from cvm import __version__
from cvm.errors import BadInput
from cvm.export.artifact import Artifact
from cvm.export.c.identifiers import base_name
from cvm.export.concrete.client import Arrays, client_steps
from cvm.export.concrete.server import server_plan
from cvm.export.refusals import Refusal, refuse
from cvm.export.samples import samples_of
from cvm.export.templates import filled, rows_of
from cvm.file import npy
from cvm.file.format import program_id
from cvm.lower import lower
from cvm.lower.fitting import measured
from cvm.lower.parties import parties
from cvm.lower.secret_program import SecretProgram, secret_program
from cvm.lower.secret_steps import SecretValue
from cvm.program import DTYPES
from cvm.proof.validate import Proven
from cvm.reference import interpreter
from cvm.runtime.receipt import digests_of

MOST_ELEMENTS = 2**20  # of one value: each is a ciphertext of kilobytes
ADVICE = "Convert with fewer bits and --scales shift, or with --for fhe"


def write(form: Proven, name: str, hide_thresholds: bool = False) -> Artifact:
    """The program for Concrete, answering with the integers of the reference machine.

    With `hide_thresholds` the client's files hold nothing of the instructions before the first sum.
    """
    lowering = lower(form)
    roles = parties(lowering, hides_head=hide_thresholds)
    program = secret_program(lowering, roles)
    _require_small(program)
    client, client_arrays = _client(program)
    server_arrays: Arrays = {}
    server = server_plan(program, server_arrays)
    samples = samples_of(form.program)
    digests = digests_of(interpreter.run(form, samples))
    client["digests"] = {key: value.hex() for key, value in digests.items()}
    head = {"format": "cvm-concrete-1", "program": program_id(form.program)}
    facts = _facts(program)
    values = {
        "NAME": base_name(name),
        "VERSION": __version__,
        "PROGRAM": head["program"],
        "FACTS": rows_of(facts),
    }
    return Artifact(
        {
            "run.py": _text("run.py.txt"),
            "README.md": filled("concrete", "README.md", values),
            "requirements.txt": _text("requirements.txt"),
            "client.json": json.dumps({**head, **client}, indent=1) + "\n",
            "server.json": json.dumps({**head, **server}, indent=1) + "\n",
        },
        facts,
        {
            "client.npz": _npz(client_arrays),
            "server.npz": _npz(server_arrays),
            "sample.npz": _sample(samples),
        },
    )


def _require_small(program: SecretProgram) -> None:
    """Raise `BadInput` that names all instructions with too many bits, steps or elements for FHE."""
    if not program.parties.server:
        raise BadInput(
            "the target concrete has nothing to encrypt: every output is a function of one input"
        )
    misfits = [
        Refusal(misfit.name, misfit.value, misfit.reason)
        for misfit in measured(program).misfits
    ]
    refuse("concrete", misfits, ADVICE)
    for value in program.values:
        if value.elements > MOST_ELEMENTS:
            raise BadInput(
                f"a value has {value.elements:,} elements; the target concrete takes at most {MOST_ELEMENTS:,}"
            )


def _client(program: SecretProgram) -> tuple[dict[str, Any], Arrays]:
    """Inputs and outputs, what is computed before encryption and after decryption, and what stored integers stand for."""
    roles, form = program.parties, program.lowering.form
    arrays: Arrays = {}
    head, refused = client_steps(program.lowering, roles.head, arrays)
    tail, others = client_steps(program.lowering, roles.tail, arrays)
    refuse("concrete", [*refused, *others], ADVICE)
    constant_outputs = {
        port.value
        for port in form.program.outputs
        if port.value in program.lowering.constant_values
    }
    for number in constant_outputs:
        arrays[f"{number}_known"] = program.lowering.constant_values[number]
    for number in (*roles.encrypted, *roles.decrypted):
        stored = program.by_number[number].stored
        arrays[f"{number}_factor"] = stored.factor
        arrays[f"{number}_offset"] = stored.offset
    return {
        "inputs": [
            {
                "name": port.name,
                "shape": list(port.type.shape),
                "dtype": DTYPES[port.type.dtype].name,
                "low": port.lo,
                "high": port.hi,
            }
            for port in form.program.inputs
        ],
        "head": head,
        "encrypted": [_port(program, x) for x in roles.encrypted],
        "decrypted": [_port(program, x) for x in roles.decrypted],
        "tail": tail,
        "known": sorted(constant_outputs),
        "outputs": {port.name: port.value for port in form.program.outputs},
    }, arrays


def _port(program: SecretProgram, number: int) -> dict[str, Any]:
    type_ = program.lowering.form.types[number]
    value: SecretValue = program.by_number[number]
    return {
        "value": number,
        "shape": list(type_.shape),
        "dtype": DTYPES[type_.dtype].name,
        "low": int(value.stored.low.min()),
        "high": int(value.stored.high.max()),
    }


def _facts(program: SecretProgram) -> dict[str, int]:
    fit = measured(program)
    return {
        "instructions": len(program.lowering.form.program.instructions),
        "steps": len(program.steps),
        "look_ups": fit.look_ups,
        "widest_index": fit.index,
        "widest_table": fit.table,
        "widest_sum": fit.sums,
    }


def _npz(arrays: Mapping[str, Any]) -> bytes:
    buffer = BytesIO()
    np.savez_compressed(buffer, **arrays)
    return buffer.getvalue()


def _sample(arrays: Mapping[str, Any]) -> bytes:
    """The samples by the names of inputs, not all of which numpy's own writer takes."""
    buffer = BytesIO()
    npy.write_npz(buffer, arrays)
    return buffer.getvalue()


def _text(name: str) -> str:
    place = files("cvm.export.concrete").joinpath("templates", name)
    return place.read_text(encoding="ascii")
