"""Exported CUDA gives the bytes of the reference: its kernels run on the processor, by a compiler of C++."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from cvm.export import targets
from cvm.export.artifact import Artifact
from cvm.file import disk
from cvm.program import DTYPE_RANGES, IntArray, Program
from cvm.proof.validate import validate
from tests.cvm.export.test_c_source import convolution
from tests.support.c_programs import SANITIZERS, needs
from tests.support.cuda_programs import CudaProgram
from tests.support.engine_cases import Case
from tests.support.example_programs import all_vectors, random_and_golden

COMPILERS = [
    pytest.param("g++", SANITIZERS, marks=needs("g++")),
    pytest.param("clang++", ("-O1",), marks=needs("clang++")),
    pytest.param(
        "nvcc",
        ("-O3", "-arch=native"),
        marks=[needs("nvcc"), needs("nvidia-smi")],
    ),
]

QUICK = [
    COMPILERS[0],
    # Every instruction is optimized by it in the vectors; here that takes six times as long.
    pytest.param("clang++", ("-O0",), marks=needs("clang++")),
    COMPILERS[2],
]


def convolutions() -> tuple[Program, dict[str, IntArray]]:
    """Sums by each kernel, and a sample: with pieces of 16, 4 and 1 channels, of outputs in fours and others, in groups."""
    case, rng = Case(), np.random.default_rng(7)
    for channels, outputs, groups, dtype in (
        (32, 24, 1, "i8"),
        (20, 16, 1, "i8"),
        (3, 40, 1, "i8"),
        (3, 5, 1, "i8"),
        (12, 12, 12, "i8"),
        (6, 6, 6, "i8"),
        (8, 12, 4, "i8"),
        (16, 8, 1, "i16"),
    ):
        low, high = DTYPE_RANGES["i8"]
        image = rng.integers(low, high + 1, (2, 7, 9, channels))
        shape = (outputs, 3, 3, channels // groups)
        weights = rng.integers(low, high + 1, shape)
        case.draft.apply(
            "conv2d",
            case.input(image, dtype),
            case.draft.array(weights.astype(np.int8), "i8"),
            case.draft.array(rng.integers(-99, 99, outputs, np.int32), "i32"),
            pad=(1, 0, 1, 1),
            stride=(1, 2),
            dilation=(1, 1),
            groups=groups,
            input_zp=-7 if dtype == "i8" else 0,
        )
    return case.draft.finish(), case.sample


def written(program: Program) -> Artifact:
    return targets.export(validate(program), "cuda", "p")


def source_of(program: Program) -> str:
    return written(program).files["p.cu"]


@pytest.fixture(scope="module")
def vectors(tmp_path_factory):
    """The program of all vectors, and its sample."""
    form, sample = all_vectors()
    return CudaProgram.write(
        form, tmp_path_factory.mktemp("vectors") / "cuda"
    ), [sample]


@pytest.fixture(scope="module")
def random_ones(tmp_path_factory):
    """The program of random and golden ones, and three samples."""
    form, samples = random_and_golden(20, of_each=10, samples=3)
    return CudaProgram.write(
        form, tmp_path_factory.mktemp("random") / "cuda"
    ), samples


@pytest.mark.parametrize(("compiler", "flags"), COMPILERS)
def test_every_vector_gives_its_answer(vectors, compiler, flags):
    program, samples = vectors
    binary = program.build(compiler, *flags)
    assert program.differing(binary, samples=samples) == []


@pytest.mark.parametrize(("compiler", "flags"), QUICK)
def test_samples_that_run_at_once_give_the_bytes_of_the_reference(
    random_ones, compiler, flags
):
    program, samples = random_ones
    binary = program.build(compiler, *flags)
    assert program.differing(binary, samples=samples) == []


@needs("g++")
def test_each_kernel_of_sums_is_taken_and_right(tmp_path):
    program, sample = convolutions()
    calls = Counter(re.findall(r"(\w+)<Convolution", source_of(program)))
    assert calls == {"tile_sums": 5, "channel_sums": 1, "window_sum": 2}
    exported = CudaProgram.write(validate(program), tmp_path / "cuda")
    assert exported.differing(exported.build("g++"), samples=[sample]) == []


def test_no_kernel_names_null():
    """Code that compared pointers with it was compiled wrongly, and a GPU read at 0."""
    kernels = [
        text
        for name, text in written(convolution()).files.items()
        if name.endswith(".cuh")
    ]
    assert kernels
    for text in kernels:
        assert not re.search(r"\bnullptr\b|\bNULL\b", text)


@needs("nvcc")
def test_nvcc_compiles_every_instruction_without_a_warning(vectors):
    program, _ = vectors
    program.kernels("nvcc", "-O0", "-arch=sm_80")


def made(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["make", "-C", str(folder), *arguments],
        capture_output=True,
        text=True,
    )


@needs("g++")
@needs("make")
def test_the_self_test_runs_without_a_gpu_and_can_fail(tmp_path):
    folder = tmp_path / "out"
    disk.write_folder(folder, written(convolution()).contents)
    done = made(folder, "test-on-cpu")
    assert done.returncode == 0, done.stderr
    assert "mismatch" not in done.stdout
    constants = folder / "p.constants"
    damaged = bytearray(constants.read_bytes())
    damaged[0] ^= 64
    constants.write_bytes(damaged)
    made(folder, "clean")
    done = made(folder, "test-on-cpu")
    assert done.returncode == 2
    assert "mismatch" in done.stdout


@needs("g++")
def test_more_samples_than_there_is_memory_for_run_in_parts(tmp_path):
    program, sample = convolutions()
    exported = CudaProgram.write(validate(program), tmp_path / "cuda")
    header = exported.folder / "on_cpu.h"
    text = header.read_text()
    scarce = text.replace(
        "  *place = aligned_alloc",
        "  if (bytes > 1000000) return cudaErrorMemoryAllocation;\n  *place = aligned_alloc",
    )
    assert scarce != text
    header.write_text(scarce)
    shifted = {name: array ^ 1 for name, array in sample.items()}
    samples = [sample, shifted, sample] * 20
    assert exported.differing(exported.build("g++"), samples=samples) == []
    header.write_text(scarce.replace("1000000", "1000"))
    with pytest.raises(AssertionError, match="out of memory"):
        exported.run(exported.build("g++"), samples=samples)


@needs("g++")
def test_a_product_that_leaves_32_bits_before_its_half_is_added(tmp_path):
    """Short multipliers are chosen where the sum fits."""
    case = Case()
    x = case.input(np.array([[-715828900, 0]]), "i32")
    case.rescale(x, [3 << 29], [52], "i8")
    form = case.proven()
    assert [facts.fits32 for facts in form.rescales.values()] == [True]
    exported = CudaProgram.write(form, tmp_path / "cuda")
    binary = exported.build("g++", *SANITIZERS)
    assert exported.differing(binary, samples=[case.sample]) == []


@needs("g++")
@needs("make")
@pytest.mark.parametrize(
    "name", ["has", "constants", "on_cpu", "warp_on_cpu", "main", "threads"]
)
def test_a_program_may_have_a_name_that_our_files_have(tmp_path, name):
    program = replace_input(convolution(), "EXIT_SUCCESS")
    artifact = targets.export(validate(program), "cuda", name)
    disk.write_folder(tmp_path / "out", artifact.contents)
    done = made(tmp_path / "out", "test-on-cpu")
    assert done.returncode == 0, done.stderr
    if shutil.which("nvcc"):
        flags = "NVCCFLAGS=-O0 -arch=sm_80"
        done = made(tmp_path / "out", "selftest", flags)
        assert done.returncode == 0, done.stderr


def replace_input(program: Program, name: str) -> Program:
    (item,) = program.inputs
    return replace(program, inputs=(replace(item, name=name),))


@needs("g++")
def test_one_sample_outside_an_interval_stops_all_before_anything_is_written(
    random_ones,
):
    program, samples = random_ones
    inputs = program.form.program.inputs
    number = next(k for k, item in enumerate(inputs) if item.hi < 100)
    wrong = {name: array.copy() for name, array in samples[1].items()}
    wrong[inputs[number].name].reshape(-1)[0] = inputs[number].hi + 1
    binary = program.build("g++")
    sent = program.bytes_of([samples[0], wrong])
    done = subprocess.run([str(binary)], input=sent, capture_output=True)
    assert done.returncode == 1
    assert done.stdout == b""
    assert done.stderr == f"input {number + 1} refused".encode()
