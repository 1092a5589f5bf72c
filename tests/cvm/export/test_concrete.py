"""Folders for Concrete: in numpy everywhere, simulated and encrypted where concrete-python is; refusals by bits."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from importlib.resources import files

import numpy as np
import pytest

from cvm.errors import BadInput
from cvm.export.targets import export
from cvm.file import format as file_format
from cvm.program import Input, Instruction, Output, Program, TensorType
from cvm.proof.validate import validate
from cvm.reference import interpreter
from tests.cvm.lower.test_secret_program import NAMES, layer
from tests.support.command import cvm, said
from tests.support.concrete_programs import (
    concrete_python,
    outputs,
    ran,
    written,
)
from tests.support.cvm_programs import random_inputs, random_program


def rescale(shift: int, count: int = 1) -> tuple[np.ndarray, np.ndarray]:
    """Return the constants of a division by 2^shift."""
    return np.full(count, 2**30, np.int32), np.full(count, 30 + shift, np.int8)


def perceptron(shift: int = 3) -> Program:
    """Return 6 to 4 to 3 in two bits: a sum, a clipped shift, a sum, a rescale by a third for the client."""
    rng = np.random.RandomState(3)
    first = rng.randint(-1, 2, (4, 6)).astype(np.int8)
    second = rng.randint(-1, 2, (3, 4)).astype(np.int8)
    multiplier, places = rescale(shift)
    i8 = {"input_zp": 0, "output_zp": 0, "dtype": "i8"}
    return Program(
        (Input("x", TensorType("i8", (1, 6)), -2, 5),),
        (
            first,
            np.array([3, -4, 0, 9], np.int32),
            multiplier,
            places,
            second,
            np.array([1, 0, -1], np.int32),
            np.array([1431655765], np.int32),
            np.array([32], np.int8),
        ),
        (
            Instruction("dense", (0, 1, 2), {"input_zp": -1}),  # %9
            Instruction("rescale", (9, 3, 4), i8),
            Instruction("clamp", (10,), {"min": 0, "max": 3}),
            Instruction("dense", (11, 5, 6), {"input_zp": 0}),  # %12
            Instruction("rescale", (12, 7, 8), i8),
        ),
        (Output("y", 13),),
    )


def images() -> Program:
    """Return a padded convolution in channels of their own, a residual sum, a pool, and a mean of what is left."""
    rng = np.random.RandomState(4)
    i8 = {"input_zp": 0, "output_zp": 0, "dtype": "i8"}
    window = {"stride": (1, 1), "dilation": (1, 1)}
    return Program(
        (Input("x", TensorType("i8", (1, 4, 4, 2)), -1, 1),),
        (
            rng.randint(-1, 2, (2, 3, 3, 2)).astype(np.int8),
            np.array([1, -2], np.int32),
            *rescale(1, 2),
            rng.randint(-1, 2, (2, 3, 3, 1)).astype(np.int8),
            np.array([0, 3], np.int32),
        ),
        (
            Instruction(
                "conv2d",
                (0, 1, 2),
                {**window, "pad": (1, 1, 1, 1), "groups": 1, "input_zp": 1},
            ),  # %7
            Instruction("rescale", (7, 3, 4), i8),
            Instruction("clamp", (8,), {"min": -2, "max": 1}),
            Instruction(
                "conv2d",
                (9, 5, 6),
                {**window, "pad": (1, 1, 1, 1), "groups": 2, "input_zp": 0},
            ),  # %10
            Instruction("add", (10, 7)),
            Instruction("clamp", (11,), {"min": 0, "max": 3}),
            Instruction(
                "max_pool2d",
                (12,),
                {"kernel": (2, 2), "stride": (2, 2), "pad": (0, 0, 0, 0)},
            ),
            Instruction("reduce_sum", (13,), {"axis": 1}),
            Instruction("clamp", (14,), {"min": 1, "max": 5}),
        ),
        (Output("y", 15),),
    )


def stumps() -> Program:
    """Return two comparisons with thresholds, of inputs of a known order, and what each leaf gives."""
    return Program(
        (Input("x", TensorType("i8", (1, 3, 1)), -8, 7),),
        (
            np.array([[2, 0]], np.int32),
            np.array([[-3, 4]], np.int32),
            np.array([[5, -1], [-2, 3]], np.int8),
            np.array([1, 7], np.int32),
        ),
        (
            Instruction("gather", (0, 1)),  # %5
            Instruction("reshape", (5,), {"shape": (1, 2)}),
            Instruction("cast", (6,), {"dtype": "i32"}),
            Instruction("greater", (7, 2)),
            Instruction("cast", (8,), {"dtype": "i8"}),
            Instruction("dense", (9, 3, 4), {"input_zp": 0}),  # %10
        ),
        (Output("y", 10),),
    )


PROGRAMS = {
    "perceptron": perceptron(),
    "images": images(),
    "comparison": layer(np.arange(-128, 128).astype(np.int8)),
}


def require_equal(form, folder, samples, *words, **options):
    for sample in samples:
        expected = interpreter.run(form, sample)
        found = outputs(folder, sample, *words, **options)
        assert found.keys() == expected.keys()
        for name, array in expected.items():
            assert found[name].dtype == array.dtype
            assert np.array_equal(found[name], array)


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_folder_gives_the_answer_of_the_reference_in_numpy(name, tmp_path):
    form = validate(PROGRAMS[name])
    folder = written(form, tmp_path / "out")
    assert ran(folder, "simulate", "--clear").endswith("match\n")
    samples = [random_inputs(form.program, seed) for seed in range(3)]
    require_equal(form, folder, samples, "--clear")


def test_random_programs_in_numpy(tmp_path):
    count = 0
    for seed in range(200, 240):
        form = validate(random_program(seed, 6, NAMES))
        if any(item.hi - item.lo > 2**12 for item in form.program.inputs):
            continue
        try:
            folder = written(form, tmp_path / str(seed))
        except BadInput:
            continue
        count += 1
        require_equal(form, folder, [random_inputs(form.program, 1)], "--clear")
    assert count >= 3


def test_without_concrete_the_folder_names_its_environment(tmp_path):
    folder = written(validate(perceptron()), tmp_path / "out")
    (tmp_path / "hidden").mkdir()
    hidden = tmp_path / "hidden" / "concrete.py"
    hidden.write_text("")  # a module of that name without the library
    words = [sys.executable, str(folder / "run.py"), "simulate"]
    environment = {**os.environ, "PYTHONPATH": str(hidden.parent)}
    found = subprocess.run(
        words, capture_output=True, text=True, env=environment
    )
    assert found.returncode == 1
    assert "README.md has the environment to make" in found.stderr
    assert "Traceback" not in found.stderr


def test_a_changed_table_is_found(tmp_path):
    folder = written(validate(perceptron()), tmp_path / "out")
    with np.load(folder / "server.npz") as stored:
        arrays = dict(stored)
    (tables,) = (key for key in arrays if key.endswith("_tables"))
    arrays[tables] = 1 - arrays[tables]
    np.savez(folder / "server.npz", **arrays)
    with pytest.raises(AssertionError, match="differs"):
        ran(folder, "simulate", "--clear")


def test_integers_outside_their_interval_are_not_encrypted(tmp_path):
    folder = written(validate(perceptron()), tmp_path / "out")
    x = np.full((1, 6), 6, np.int8)
    with pytest.raises(AssertionError, match=r"x leaves -2\.\.5"):
        outputs(folder, {"x": x}, "--clear")


def test_the_client_has_neither_weights_nor_tables(tmp_path):
    folder = written(validate(perceptron()), tmp_path / "out")
    with np.load(folder / "client.npz") as stored:
        names = set(stored.files)
    tail = {"classes", "offsets", "starts", "values"}
    ends = {f"0_{name}" for name in ("factor", "offset")}
    ends |= {f"12_{name}" for name in ("factor", "offset")}
    assert names == ends | {f"13_{name}" for name in tail}
    server = json.loads((folder / "server.json").read_text())
    kinds = [step["kind"] for step in server["steps"]]
    assert kinds == ["dot", "look up", "dot"]


def test_thresholds_can_be_hidden_from_the_client(tmp_path):
    form = validate(stumps())
    samples = [random_inputs(form.program, seed) for seed in range(3)]
    held = []
    for words in ({}, {"--hide-thresholds": True}):
        folder = written(form, tmp_path / str(len(held)), options=words)
        assert ran(folder, "simulate", "--clear").endswith("match\n")
        require_equal(form, folder, samples, "--clear")
        client = json.loads((folder / "client.json").read_text())
        with np.load(folder / "client.npz") as stored:
            held.append((len(client["head"]), stored.files))
    assert held[0][0] == 3 and "9_starts" in held[0][1]
    ends = ["0_factor", "0_offset", "10_factor", "10_offset"]
    assert held[1] == (0, ends)  # it encrypts x as it is


def test_only_concrete_has_thresholds_to_hide(tmp_path):
    file_format.write(stumps(), tmp_path / "p.cvm")
    words = ("export", tmp_path / "p.cvm", "-o", tmp_path / "out", "--to")
    found = cvm(*words, "c", "--hide-thresholds")
    assert "the target c has no option --hide-thresholds" in said(found, 2)
    assert cvm(*words, "concrete", "--hide-thresholds").exit_code == 0
    client = json.loads((tmp_path / "out" / "client.json").read_text())
    assert client["head"] == []


def coarse() -> Program:
    """Return a quarter of a sum of 13 bits, of which 12 are left; then another sum."""
    quarter = (np.array([2**30], np.int32), np.array([32], np.int8))
    return replace(wide(13), constants=quarter)


def test_where_many_bits_are_left_the_table_has_all(tmp_path):
    """Concrete has no parameters for an index of 13 bits of which one is truncated."""
    folder = written(validate(coarse()), tmp_path / "out")
    server = json.loads((folder / "server.json").read_text())
    (look_up,) = (x for x in server["steps"] if x["kind"] == "look up")
    assert (look_up["bits"], look_up["dropped"]) == (13, 1)
    assert ran(folder, "simulate", "--clear").endswith("match\n")
    found = ran(folder, "simulate", python=concrete_python())
    assert found.endswith("match\n")


def wide(bits: int) -> Program:
    """Return a third of a sum of 2^bits numbers, whose steps are at no even distance; then another sum."""
    i32 = TensorType("i32", (1, 2))
    half = 2 ** (bits - 1)
    return Program(
        (Input("x", i32, 0, half - 1), Input("z", i32, 0, half - 1)),
        (
            np.array([1431655765], np.int32),
            np.array([32], np.int8),
        ),
        (
            Instruction("add", (0, 1)),  # %4
            Instruction(
                "rescale",
                (4, 2, 3),
                {"input_zp": 0, "output_zp": 0, "dtype": "i32"},
            ),
            Instruction("add", (5, 0)),
        ),
        (Output("y", 6),),
    )


def test_a_wide_look_up_is_refused_by_its_bits_with_what_to_do():
    with pytest.raises(BadInput) as problem:
        export(validate(wide(18)), "concrete", "p")
    assert str(problem.value) == (
        "the target concrete cannot express rescale (%5): it needs a look-up of 18 bits, FHE has 16. "
        "Convert with fewer bits and --scales shift, or with --for fhe"
    )
    assert export(validate(wide(14)), "concrete", "p").facts == {
        "instructions": 3,
        "steps": 3,
        "look_ups": 2,
        "widest_index": 14,
        "widest_table": 14,
        "widest_sum": 14,
    }


def test_products_of_secrets_and_lone_functions_are_refused():
    i32 = TensorType("i32", (2,))
    inputs = (Input("x", i32, -9, 9), Input("y", i32, -9, 9))
    product = Program(
        inputs,
        (),
        (Instruction("mul", (0, 1), {"shift": 0}),),
        (Output("z", 2),),
    )
    with pytest.raises(
        BadInput, match=r"mul \(%2\): it multiplies two secrets"
    ):
        export(validate(product), "concrete", "p")
    alone = Program(
        inputs[:1], (), (Instruction("abs", (0,)),), (Output("z", 1),)
    )
    with pytest.raises(BadInput, match="every output is a function of one"):
        export(validate(alone), "concrete", "p")


def test_bits_are_truncated_and_never_approximated():
    """The program asks Concrete for the exact operation alone."""
    place = files("cvm.export.concrete").joinpath("templates", "run.py.txt")
    text = place.read_text(encoding="ascii")
    assert "truncate_bit_pattern" in text
    assert "round_bit_pattern" not in text
    assert "APPROXIMATE" not in text.upper().replace("NEVER APPROXIMATE", "")


@pytest.mark.parametrize("name", PROGRAMS)
def test_simulated(name, tmp_path):
    python = concrete_python()
    form = validate(PROGRAMS[name])
    folder = written(form, tmp_path / "out")
    found = ran(folder, "simulate", python=python)
    assert found.endswith("match\n")
    ends = [
        {
            item.name: np.full(
                item.type.shape, end, item.type.dtype.replace("i", "int")
            )
            for item in form.program.inputs
        }
        for end in (form.program.inputs[0].lo, form.program.inputs[0].hi)
    ]
    require_equal(form, folder, ends, python=python)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["perceptron", "comparison", "stumps"])
def test_encrypted(name, tmp_path):
    """Keys and ciphertexts go through files, between two folders."""
    python = concrete_python()
    hidden = {"--hide-thresholds": name == "stumps"}
    program = stumps() if name == "stumps" else PROGRAMS[name]
    folder = written(validate(program), tmp_path / "out", options=hidden)
    for words in (
        ("compile", "--p-error", "1e-9"),
        ("client", "keygen"),
        ("client", "encrypt"),
        ("server", "run"),
    ):
        ran(folder, *words, python=python)
    found = ran(folder, "client", "decrypt", python=python)
    assert found.endswith("match\n")
    assert not (folder / "server" / "secret.keys").exists()
