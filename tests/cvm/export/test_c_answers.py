"""Exported C gives the bytes of the reference: every vector, random programs, the golden files, each compiler at hand."""

from __future__ import annotations

from pathlib import Path

import pytest

from cvm.file import format as file_format
from cvm.proof.validate import validate
from tests.conformance.test_vectors import load_vectors, program_of_vector
from tests.support.c_programs import (
    SANITIZERS,
    CProgram,
    merged,
    needs,
    prefixed,
)
from tests.support.cvm_programs import random_inputs, random_program

GOLDEN = Path(__file__).resolve().parent.parent / "golden"
BUILDS = [
    pytest.param("gcc", ("-O0",), id="gcc -O0", marks=needs("gcc")),
    pytest.param("gcc", ("-O3",), id="gcc -O3", marks=needs("gcc")),
    pytest.param("clang", ("-O2",), id="clang", marks=needs("clang")),
    pytest.param("gcc", SANITIZERS, id="sanitizers", marks=needs("gcc")),
]
SEEDS = range(40)


@pytest.fixture(scope="module")
def vectors(tmp_path_factory):
    """All vectors that have an answer, as one program, with the sample that they fix."""
    programs, samples = [], []
    for name, vector in load_vectors():
        if "outputs" in vector:
            program, arrays = program_of_vector(name, vector)
            programs.append(program)
            samples.append(arrays)
    form = validate(merged(programs))
    folder = tmp_path_factory.mktemp("vectors")
    return CProgram.write(form, folder), [prefixed(samples)]


@pytest.fixture(scope="module")
def random_ones(tmp_path_factory):
    """Random programs and the golden ones, as one program, with samples at the ends of intervals and within."""
    programs = [random_program(seed) for seed in SEEDS]
    programs += [
        file_format.read(path) for path in sorted(GOLDEN.glob("*.cvm"))
    ]
    form = validate(merged(programs))
    samples = [random_inputs(form.program, seed) for seed in range(3)]
    folder = tmp_path_factory.mktemp("random")
    return CProgram.write(form, folder), samples


@pytest.mark.parametrize(("compiler", "flags"), BUILDS)
def test_every_vector_gives_its_answer(vectors, compiler, flags):
    program, samples = vectors
    assert (
        program.differing(program.build(compiler, *flags), samples=samples)
        == []
    )


@pytest.mark.parametrize(("compiler", "flags"), BUILDS)
def test_random_and_golden_programs_give_the_bytes_of_the_reference(
    random_ones, compiler, flags
):
    program, samples = random_ones
    assert (
        program.differing(program.build(compiler, *flags), samples=samples)
        == []
    )
