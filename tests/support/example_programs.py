"""Programs that a back end is tried on: the vectors, and random and golden ones; many as one, with their samples."""

from __future__ import annotations

from pathlib import Path

from cvm.file import format as file_format
from cvm.proof.validate import Proven, validate
from tests.conformance.test_vectors import load_vectors, program_of_vector
from tests.support.c_programs import Arrays, merged, prefixed
from tests.support.cvm_programs import program_of, random_inputs, random_program

GOLDEN = Path(__file__).resolve().parent.parent / "cvm" / "golden"
FINISHED = ("rescale", "add", "mul", "clamp", "select")


def all_vectors() -> tuple[Proven, Arrays]:
    """Return all vectors that have an answer, as one program, with the sample that they fix."""
    programs, samples = [], []
    for name, vector in load_vectors():
        if "outputs" in vector:
            program, arrays = program_of_vector(name, vector)
            programs.append(program)
            samples.append(arrays)
    return validate(merged(programs)), prefixed(samples)


def random_and_golden(
    randoms: int, of_each: int, samples: int
) -> tuple[Proven, list[Arrays]]:
    """Return so many random programs, so many with sums of each kind, and the golden ones, as one program.

    The samples are at the ends of intervals and within.
    """
    programs = [random_program(seed) for seed in range(randoms)]
    programs += [
        program_of((sums, *FINISHED), seed)
        for sums in ("conv2d", "dense", "matmul")
        for seed in range(of_each)
    ]
    programs += [
        file_format.read(path) for path in sorted(GOLDEN.glob("*.cvm"))
    ]
    form = validate(merged(programs))
    seeds = range(samples)
    return form, [random_inputs(form.program, seed) for seed in seeds]
