"""The conformance vectors as programs: those of one instruction side by side in one, each output named as its vector."""

from __future__ import annotations

from dataclasses import replace

from cvm.program import IntArray, Output, Program
from tests.conformance.test_vectors import (
    Vector,
    array_of,
    load_vectors,
    program_of_vector,
)
from tests.support.c_programs import merged, prefixed


def instructions() -> list[str]:
    """Those that have vectors, by name."""
    return sorted({name for name, _ in load_vectors()})


def program_of(instruction: str) -> tuple[Program, dict[str, IntArray]]:
    """The program with its sample: the k-th of its instructions is the k-th vector that has an answer."""
    vectors = _answered(instruction)
    made = [program_of_vector(instruction, vector) for vector in vectors]
    program = merged([one for one, _ in made])
    outputs = tuple(
        Output(vector["name"], port.value)
        for vector, port in zip(vectors, program.outputs, strict=True)
    )
    sample = prefixed([arrays for _, arrays in made])
    return replace(program, outputs=outputs), sample


def literals(instruction: str) -> dict[str, IntArray]:
    """What the vectors say that the outputs are."""
    found = {}
    for vector in _answered(instruction):
        (item,) = vector["outputs"]
        found[vector["name"]] = array_of(item, item["dtype"])
    return found


def _answered(instruction: str) -> list[Vector]:
    return [
        vector
        for name, vector in load_vectors()
        if name == instruction and "outputs" in vector
    ]
