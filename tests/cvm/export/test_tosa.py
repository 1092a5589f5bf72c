"""An exported TOSA file gives the bytes of the reference in Arm's reference model, which finds a fault of one bit."""

from __future__ import annotations

import subprocess
from dataclasses import replace

import numpy as np
import pytest

from cvm.errors import BadInput
from cvm.export import targets
from cvm.export.tosa import TABLE
from cvm.export.tosa.model import graph_of
from cvm.file import disk
from cvm.instructions import INSTRUCTIONS
from cvm.program import DTYPES, Input, Instruction, Output, Program, TensorType
from cvm.proof.validate import validate
from cvm.reference.interpreter import run as run_reference
from cvm.tosa.graph import TosaGraph, from_bytes, to_bytes
from tests.conformance.test_vectors import load_vectors, program_of_vector
from tests.cvm.export.test_c_source import convolution
from tests.determinism.programs import all_items
from tests.support import tosa_programs
from tests.support.cvm_programs import (
    MAKERS,
    program_of,
    random_inputs,
    random_program,
)
from tests.support.tosa_programs import answers_of, differing, job_of

needs_tosa = pytest.mark.skipif(
    not tosa_programs.HAS_TOSA, reason=tosa_programs.NO_TOSA
)
KINDS = sorted(TABLE)
WRITTEN = tuple(name for name in MAKERS if name in TABLE)
DEMOS = (
    "models/lenet_digits28-8bit",
    "models/resnet_digits8-8bit",
    "models/resnet_digits8-16bit",
)


def test_every_instruction_but_one_is_written():
    assert INSTRUCTIONS.keys() - TABLE.keys() == {"nms"}
    assert TABLE.keys() <= INSTRUCTIONS.keys()


def vectors_of(kind):
    """Return the answers of an instruction's vectors and what they are computed from."""
    answers, jobs = [], []
    for name, vector in load_vectors():
        if name != kind or "outputs" not in vector:
            continue
        program, arrays = program_of_vector(kind, vector)
        jobs.append(job_of(validate(program), arrays))
        answers.append([array_of(item) for item in vector["outputs"]])
    return answers, jobs


def array_of(item):
    """Return an output as it is written down; the shape is compared by the reference."""
    return np.asarray(item["data"], DTYPES[item["dtype"]]).ravel()


@needs_tosa
@pytest.mark.parametrize("kind", KINDS)
def test_the_vectors_of_an_instruction_give_their_answers(kind):
    expected, jobs = vectors_of(kind)
    for answer, outputs in zip(answers_of(jobs), expected, strict=True):
        assert answer.status == "TOSA_VALID", answer.error
        for found, array in zip(answer.outputs, outputs, strict=True):
            held = tosa_programs.signed(array)
            assert found.dtype == held.dtype
            assert np.array_equal(
                found.ravel(), np.broadcast_to(held, found.size)
            )


@needs_tosa
@pytest.mark.parametrize("kind", WRITTEN)
def test_an_instruction_gives_the_bytes_of_the_reference(kind):
    steps = (kind, "clamp")
    programs = [program_of(steps, seed) for seed in range(6)]
    assert problems(programs) == []


@needs_tosa
def test_random_programs_give_the_bytes_of_the_reference():
    programs = [random_program(n, 8 + n % 30, WRITTEN) for n in range(40)]
    assert problems(programs) == []


def problems(programs):
    """Return what differs."""
    jobs, expected = [], []
    for number, program in enumerate(programs):
        form = validate(program)
        sample = random_inputs(program, number)
        jobs.append(job_of(form, sample))
        expected.append(list(run_reference(form, sample).values()))
    found = map(differing, answers_of(jobs), expected)
    return [problem for problem in found if problem]


@needs_tosa
@pytest.mark.parametrize("name", DEMOS)
def test_a_demo_model_gives_the_bytes_of_the_reference(name):
    for item in all_items(name):
        form = validate(item.program)
        expected = run_reference(form, item.sample).values()
        (answer,) = answers_of([job_of(form, item.sample)])
        assert differing(answer, list(expected)) == ""


def rescaled(dtype, factors):
    multiplier, shift = zip(*factors, strict=True)
    return Program(
        (
            Input(
                "x", TensorType("i32", (4, len(factors))), -(2**31), 2**31 - 1
            ),
        ),
        (np.array(multiplier, np.int32), np.array(shift, np.int8)),
        (
            Instruction(
                "rescale",
                (0, 1, 2),
                {"input_zp": 0, "output_zp": 0, "dtype": dtype},
            ),
        ),
        (Output("y", 3),),
    )


@needs_tosa
def test_a_rescale_beyond_the_range_of_its_shift_saturates_as_here():
    form = validate(rescaled("i16", [(2**30, 2)]))
    x = np.array([-(2**31), 0, 1, 2**31 - 1], np.int32).reshape(4, 1)
    (answer,) = answers_of([job_of(form, {"x": x})])
    assert answer.outputs[0].ravel().tolist() == [-32768, 0, 32767, 32767]


FACTORS = [(2**30, 30), (2**31 - 1, 30), (3 * 2**29, 29), (1, 62), (0, 62), (2**30, 2)]  # fmt: skip


@needs_tosa
def test_a_rescale_to_32_bits_is_exact_at_the_ends_of_what_fits():
    form = validate(rescaled("i32", FACTORS))
    ends = [((2**31 << s) - (1 << s - 1) - 1) // m if m else 0 for m, s in FACTORS]  # fmt: skip
    ends = np.clip(ends, 0, 2**31 - 3)
    for end in (ends, -ends):
        x = np.stack([end - 1, end, end + 1, end + 2]).astype(np.int32)
        expected = list(run_reference(form, {"x": x}).values())
        (answer,) = answers_of([job_of(form, {"x": x})])
        assert differing(answer, expected) == ""


def test_a_program_with_nms_is_refused_by_name():
    name, vector = next(
        (name, vector)
        for name, vector in load_vectors()
        if name == "nms" and "outputs" in vector
    )
    program, _ = program_of_vector(name, vector)
    with pytest.raises(BadInput, match=r"the target tosa has no nms \(%\d+\)"):
        targets.export(validate(program), "tosa", "p")


@needs_tosa
def test_a_fault_of_one_bit_is_found():
    form = validate(convolution())
    sample = random_inputs(form.program, 1)
    expected = list(run_reference(form, sample).values())
    graph, arrays = job_of(form, sample)
    other = to_bytes(with_one_bit_flipped(from_bytes(graph)))
    right, wrong = answers_of([(graph, arrays), (other, arrays)])
    assert differing(right, expected) == ""
    assert differing(wrong, expected) != ""


def with_one_bit_flipped(graph: TosaGraph) -> TosaGraph:
    """Return the graph with another weight."""
    step = next(item for item in graph.operators if item.name == "CONV2D")
    tensors = tuple(
        replace(item, data=bytes([item.data[0] ^ 4]) + item.data[1:])
        if item.name == step.inputs[1]
        else item
        for item in graph.tensors
    )
    return replace(graph, tensors=tensors)


def test_names_of_inputs_and_outputs_stay_apart():
    program = Program(
        (Input("x", TensorType("i32", (2,)), 0, 5),),
        (),
        (Instruction("add", (0, 0)),),
        (Output("x", 1), Output("y", 1), Output("v1", 1)),
    )
    graph = graph_of(validate(program))
    assert graph.inputs == ("x",)
    assert graph.outputs == ("x_1", "y", "v1_1")
    names = [item.name for item in graph.tensors]
    assert len(names) == len(set(names))


def test_an_export_is_the_same_each_time():
    form = validate(convolution())
    first, second = (targets.export(form, "tosa", "p") for _ in range(2))
    assert first == second
    expected = ["README.md", "p.tosa", "sample.npz", "test.py"]
    assert sorted(first.contents) == expected


def test_a_file_that_was_written_is_read_as_it_was():
    graph = graph_of(validate(convolution()))
    assert from_bytes(to_bytes(graph)) == graph


@needs_tosa
def test_the_self_test_matches_and_another_answer_does_not(tmp_path):
    form = validate(convolution())
    folder = tmp_path / "out"
    disk.write_folder(folder, targets.export(form, "tosa", "p").contents)
    assert self_test(folder) == (0, "match")
    with np.load(folder / "sample.npz") as stored:
        arrays = [stored[name] * 0 for name in stored.files]
    np.savez(folder / "sample.npz", *arrays)
    assert self_test(folder) == (1, "differs")


def self_test(folder):
    given = [str(tosa_programs.PYTHON), "test.py"]
    done = subprocess.run(given, cwd=folder, capture_output=True, text=True)
    return done.returncode, done.stdout.splitlines()[-1]
