"""Programs compiled by XLA give the bytes of the reference, of every instruction, with every value to be seen."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from functools import cache, partial
from pathlib import Path

import numpy as np
import pytest

jax = pytest.importorskip("jax", reason="jax is not installed")

import cvm as library  # noqa: E402
from cvm.errors import BadInput  # noqa: E402
from cvm.file import format as file_format  # noqa: E402
from cvm.instructions import INSTRUCTIONS  # noqa: E402
from cvm.program import (  # noqa: E402
    Input,
    Instruction,
    Output,
    Program,
    TensorType,
)
from cvm.proof.validate import validate  # noqa: E402
from cvm.reference import interpreter  # noqa: E402
from cvm.xla import linear, windows  # noqa: E402
from cvm.xla.arrays import RAW_TERMS  # noqa: E402
from cvm.xla.function import outputs_of  # noqa: E402
from cvm.xla.machine import Xla, types_of  # noqa: E402
from cvm.xla.registry import LOWERINGS  # noqa: E402
from tests.conformance.test_vectors import (  # noqa: E402
    load_vectors,
    program_of_vector,
)
from tests.cvm.export.test_c_source import convolution  # noqa: E402
from tests.support.c_programs import merged, prefixed  # noqa: E402
from tests.support.command import cvm, said  # noqa: E402
from tests.support.cvm_programs import (  # noqa: E402
    MAKERS,
    random_inputs,
    random_program,
)
from tests.support.without_jax import without_jax  # noqa: E402

VECTORS = [
    (name, vector) for name, vector in load_vectors() if "outputs" in vector
]
NAMES = sorted({name for name, _ in VECTORS})


@cache
def vectors_of(name):
    """Return all vectors of an instruction as one program, for what takes time is to compile, and the sample of all."""
    pairs = [program_of_vector(own, v) for own, v in VECTORS if own == name]
    programs, samples = zip(*pairs, strict=True)
    return validate(merged(programs)), prefixed(samples)


def require_equal(form, sample, *, plain=True):
    """Compare outputs and every instruction's value with the reference's; `plain`: compile for outputs alone, too."""
    expected, found = {}, {}
    answers = interpreter.run(form, sample, observe=expected.__setitem__)
    machine = Xla(form)
    require_same(machine.run(sample, observe=found.__setitem__), answers)
    if plain:
        require_same(machine.run(sample), answers)
    assert found.keys() == expected.keys()
    for number, array in expected.items():
        same(found[number], array)


def require_same(outputs, answers):
    assert outputs.keys() == answers.keys()
    for name, array in answers.items():
        same(outputs[name], array)


def same(found, expected):
    assert found.dtype == expected.dtype
    assert np.array_equal(found, expected)


def sums(terms, dtype, value, weight, zero_point):
    """Return one row of equal values times equal weights."""
    x = TensorType(dtype, (1, terms))
    return Program(
        (Input("x", x, value, value),),
        (np.full((1, terms), weight, np.int8), np.array([7], np.int32)),
        (Instruction("dense", (0, 1, 2), {"input_zp": zero_point}),),
        (Output("y", 3),),
    )


def test_every_instruction_is_lowered():
    assert LOWERINGS.keys() == INSTRUCTIONS.keys()
    assert set(NAMES) == INSTRUCTIONS.keys()


@pytest.mark.parametrize("name", NAMES)
def test_vectors_give_their_answers(name):
    require_equal(*vectors_of(name), plain=False)


@pytest.mark.parametrize("name", NAMES)
def test_vectors_folded_by_the_compiler_give_their_answers(name):
    """Where all is constant XLA computes by other code; it counts the leading zeros of -1 as -32."""
    form, sample = vectors_of(name)
    inputs = [sample[item.name] for item in form.program.inputs]
    with jax.enable_x64(True):
        found = jax.jit(partial(outputs_of(form), *inputs))()
    expected = interpreter.run(form, sample)
    for output, array in zip(form.program.outputs, found, strict=True):
        same(array, expected[output.name])


@pytest.mark.parametrize("seed", range(20))
def test_a_random_program_gives_the_bytes_of_the_reference(seed):
    form = validate(random_program(seed, 8 + seed % 30, tuple(MAKERS)))
    require_equal(form, random_inputs(form.program, seed))


@pytest.mark.parametrize("terms", [RAW_TERMS, RAW_TERMS + 1])
def test_sums_of_bytes_stay_in_32_bits_whatever_the_zero_point(terms):
    """Raw products reach 2^31 there, though those of the distance to the zero point are small."""
    form = validate(sums(terms, "i8", -128, -128, -127))
    sample = {"x": np.full((1, terms), -128, np.int8)}
    require_equal(form, sample)


def test_more_places_of_a_window_than_slices_are_gathered(monkeypatch):
    name, vector = next(item for item in VECTORS if item[0] == "conv2d")
    for limit in (0, 64):
        monkeypatch.setattr(windows, "MOST_SLICES", limit)
        program, sample = program_of_vector(name, vector)
        require_equal(validate(program), sample)


def test_a_wrong_lowering_is_seen(monkeypatch):
    """Half of what the tests above promise: the comparison can fail."""
    monkeypatch.setitem(
        LOWERINGS,
        "dense",
        lambda x, w, b, input_zp: linear.dense(x, w, b + 1, input_zp=input_zp),
    )
    form = validate(sums(4, "i16", 3, 2, 0))
    with pytest.raises(AssertionError):
        require_equal(form, {"x": np.full((1, 4), 3, np.int16)})


PREFERS_THE_SECOND = """
import jax
from cvm.proof.validate import validate
from cvm.xla.function import outputs_of
from cvm.xla.machine import compiled
from tests.cvm.export.test_c_source import convolution
from tests.support.cvm_programs import random_inputs

first, second = jax.devices()
jax.config.update("jax_default_device", second)
form = validate(convolution())
(x,) = random_inputs(form.program, 1).values()
y, *_ = compiled(form, outputs_of(form))(x)
assert y.devices() == {first}, y.devices()
assert jax.numpy.zeros(1).devices() == {second}
"""


def test_it_runs_on_the_processor_whatever_device_jax_prefers():
    """A second processor stands for a GPU, on which XLA computes other bytes."""
    flags = "--xla_force_host_platform_device_count=2"
    subprocess.run(
        [sys.executable, "-c", PREFERS_THE_SECOND],
        env={**os.environ, "XLA_FLAGS": flags, "JAX_PLATFORMS": "cpu"},
        cwd=Path(__file__).parents[3],
        check=True,
    )


def test_no_value_is_a_float():
    """Of all vectors, as StableHLO: f16, f32, f64 and bf16 stand in no type."""
    for name in NAMES:
        form, _ = vectors_of(name)
        with jax.enable_x64(True):
            lowered = jax.jit(outputs_of(form)).lower(*types_of(form))
        text = lowered.as_text()
        assert not any(f"{kind}>" in text for kind in ("f16", "f32", "f64"))


def test_64_bits_stay_off_for_everyone_else():
    form = validate(convolution())
    Xla(form).run(random_inputs(form.program, 1))
    assert not jax.config.jax_enable_x64


@pytest.fixture
def files(tmp_path):
    """Return the paths of a program and of a sample."""
    program = convolution()
    path, arrays = tmp_path / "small.cvm", tmp_path / "x.npz"
    file_format.write(program, path)
    np.savez(arrays, **random_inputs(program, 3))
    return path, arrays


def test_the_command_runs_it_and_its_receipt_is_that_of_the_reference(
    files, tmp_path
):
    path, arrays = files
    receipts = []
    for engine in ("reference", "xla"):
        receipt = tmp_path / f"{engine}.json"
        words = ("--input", arrays, "--engine", engine)
        trace = ("--trace", tmp_path / f"{engine}.trace.json")
        result = cvm("run", path, *words, *trace, "--receipt", receipt)
        assert result.exit_code == 0, result.output
        receipts.append(json.loads(receipt.read_text()))
    assert receipts[0] == receipts[1]


def test_many_samples_and_python(files):
    path, arrays = files
    with np.load(arrays) as stored:
        sample = {name: np.repeat(stored[name], 3, axis=0) for name in stored}
    answers = [
        library.load(path, engine=engine).run(sample, threads=2)
        for engine in ("reference", "xla")
    ]
    for name, array in answers[0].items():
        same(answers[1][name], array)


def test_without_jax_the_command_names_what_to_install(files):
    path, arrays = files
    words = ["run", str(path), "--input", str(arrays), "--engine", "xla"]
    assert without_jax("cvm.__main__", *words) == (
        2,
        "cvm: jax is not installed; to get it, pip install 'mrt-cvm[xla]'\n",
    )


def test_an_unproven_program_is_not_for_xla(files):
    path, arrays = files
    words = ("--input", arrays, "--engine", "xla", "--checked")
    sentence = said(cvm("run", path, *words), 2)
    assert sentence.endswith("leave 'checked' or the xla engine away")
    with pytest.raises(BadInput, match="expected one of"):
        library.load(path, engine="cuda")
