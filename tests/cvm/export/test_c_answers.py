"""Exported C gives the bytes of the reference: every vector, random programs, the golden files, each compiler at hand."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from cvm.export.c.program import plan
from tests.support.c_programs import (
    BARE_FLAGS,
    SANITIZERS,
    CProgram,
    needs,
)
from tests.support.example_programs import all_vectors, random_and_golden

BUILDS = [
    pytest.param("gcc", ("-O0",), id="gcc -O0", marks=needs("gcc")),
    pytest.param("gcc", ("-O3",), id="gcc -O3", marks=needs("gcc")),
    pytest.param("clang", ("-O2",), id="clang", marks=needs("clang")),
    pytest.param("gcc", SANITIZERS, id="sanitizers", marks=needs("gcc")),
]


@pytest.fixture(scope="module")
def vectors(tmp_path_factory):
    """The program of all vectors, and its sample."""
    form, sample = all_vectors()
    return CProgram.write(form, tmp_path_factory.mktemp("vectors") / "c"), [
        sample
    ]


@pytest.fixture(scope="module")
def random_ones(tmp_path_factory):
    """The program of random and golden ones, and three samples."""
    form, samples = random_and_golden(20, of_each=10, samples=3)
    return CProgram.write(
        form, tmp_path_factory.mktemp("random") / "c"
    ), samples


def test_the_programs_hold_what_is_to_be_shown(random_ones):
    """Sums whose rows the next instructions finish, of each kind, and loops of many instructions."""
    program, _ = random_ones
    steps = plan(program.form)
    finished = Counter(
        steps.node(step.values[0]).name
        for step in steps.steps
        if steps.finishes_rows(step)
    )
    assert min(finished[n] for n in ("conv2d", "dense", "matmul")) >= 3
    assert max(len(step.values) for step in steps.steps) >= 5


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


def is_big_endian(binary: Path) -> bool:
    return binary.read_bytes()[5] == 2  # EI_DATA of ELF


@needs("aarch64-linux-gnu-gcc")
@needs("qemu-aarch64_be-static")
def test_a_processor_of_the_other_byte_order_gives_the_same_answers(vectors):
    """Without a C library, for none is installed for it: so this also shows that the source needs none."""
    program, samples = vectors
    other = replace(program, byte_order=">")
    compiler = "aarch64-linux-gnu-gcc"
    binary = other.build(compiler, *BARE_FLAGS, main="bare.c")
    assert is_big_endian(binary)
    launcher = ["qemu-aarch64_be-static"]
    assert other.differing(binary, launcher=launcher, samples=samples) == []


@needs("aarch64-linux-gnu-gcc")
@needs("qemu-aarch64-static")
def test_arm_gives_the_same_answers(random_ones):
    program, samples = random_ones
    flags = [flag for flag in BARE_FLAGS if flag != "-mbig-endian"]
    compiler = "aarch64-linux-gnu-gcc"
    binary = program.build(compiler, *flags, main="bare.c")
    assert not is_big_endian(binary)
    launcher = ["qemu-aarch64-static"]
    assert program.differing(binary, launcher=launcher, samples=samples) == []
