"""Constraints hold for the reference's outputs and for nothing else; the files are read from their description alone."""

from __future__ import annotations

import json

import numpy as np
import pytest

from cvm.errors import BadInput
from cvm.export.r1cs import files, functions, system
from cvm.export.r1cs.circuit import circuit_of
from cvm.export.r1cs.fit import fit
from cvm.export.r1cs.rules import RULES
from cvm.export.r1cs.secret import constant
from cvm.export.targets import export
from cvm.file import format as file_format
from cvm.lower import lower
from cvm.lower.runnable import runnable
from cvm.lower.step_function import step_function
from cvm.program import DTYPES, Input, Instruction, Output, Program, TensorType
from cvm.proof.validate import validate
from cvm.reference import interpreter
from tests.conformance.test_vectors import load_vectors, program_of_vector
from tests.cvm.lower.test_lowering import leaky_relu
from tests.support.command import cvm, said
from tests.support.cvm_programs import MAKERS, random_inputs, random_program
from tests.support.golden import inputs_of
from tests.support.r1cs_reader import (
    BN254,
    broken,
    read_constraints,
    read_witness,
    signed,
)

NAMES = tuple(name for name in MAKERS if name in RULES)
KEY = {  # of no setup, but as one looks to which people contributed
    "vk_alpha_1": ["7", "9", "1"],
    "vk_gamma_2": [["3", "4"], ["5", "6"], ["1", "0"]],
    "vk_delta_2": [["8", "4"], ["5", "6"], ["1", "0"]],
}
RESCALE = {"input_zp": 0, "output_zp": 0, "dtype": "i8"}
VECTORS = [
    (name, vector)
    for name, vector in load_vectors()
    if "outputs" in vector and name in RULES
]


def written(form, sample):
    """Return the constraints and the witness, as a reader of the files has them."""
    made = circuit_of(form, sample)
    found = read_constraints(files.r1cs(made))
    return found, read_witness(files.witness(made))


def require_right(form, sample):
    found, witness = written(form, sample)
    assert found.wires == len(witness)
    assert broken(found, witness) == []
    expected = interpreter.run(form, sample)
    names = [item.name for item in form.program.outputs]
    flat = [int(x) for name in names for x in expected[name].reshape(-1)]
    assert found.public_outputs == 8 + len(flat)
    assert [signed(x) for x in witness[9 : 9 + len(flat)]] == flat
    return found, witness


def classifier() -> Program:
    """Return a dense layer of 6 to 3 and a rescale by a third."""
    rng = np.random.RandomState(5)
    weights = rng.randint(-9, 10, (3, 6)).astype(np.int8)
    bias = np.array([5, -70, 12], np.int32)
    multiplier, shift = (
        np.array([1431655765], np.int32),
        np.array([32], np.int8),
    )
    return Program(
        (Input("x", TensorType("i8", (1, 6)), -20, 90),),
        (weights, bias, multiplier, shift),
        (
            Instruction("dense", (0, 1, 2), {"input_zp": 3}),
            Instruction("rescale", (5, 3, 4), {**RESCALE, "output_zp": -7}),
        ),
        (Output("y", 6),),
    )


def pooled() -> Program:
    """Return a convolution with two groups and pads, a table, a maximum of windows and one of two values."""
    rng = np.random.RandomState(6)
    weights = rng.randint(-5, 6, (2, 2, 2, 1)).astype(np.int8)
    bias = np.array([40, -3], np.int32)
    multiplier = np.array([2**30, 2**30 + 77], np.int32)
    shift = np.array([33, 32], np.int8)
    table = rng.randint(-128, 128, 256).astype(np.int8)
    window = {"kernel": (2, 2), "stride": (1, 1), "pad": (1, 0, 0, 0)}
    linear = {
        "pad": (1, 0, 0, 1),
        "stride": (1, 1),
        "dilation": (1, 1),
        "groups": 2,
        "input_zp": -4,
    }
    return Program(
        (Input("x", TensorType("i8", (1, 3, 3, 2)), -10, 10),),
        (weights, bias, multiplier, shift, table),
        (
            Instruction("conv2d", (0, 1, 2), linear),  # %6
            Instruction("rescale", (6, 3, 4), RESCALE),
            Instruction("table", (7, 5)),
            Instruction("max_pool2d", (8,), window),  # %9
            Instruction("cast", (9,), {"dtype": "i32"}),
            Instruction("cast", (7,), {"dtype": "i32"}),
            Instruction(
                "slice", (11,), {"start": (0, 0, 0, 0), "size": (1, 3, 2, 2)}
            ),
            Instruction(
                "slice", (10,), {"start": (0, 0, 0, 0), "size": (1, 3, 2, 2)}
            ),
            Instruction("minimum", (12, 13)),
            Instruction("greater", (12, 13)),
            Instruction("select", (15, 12, 13)),
        ),
        (Output("least", 14), Output("most", 16)),
    )


SMALL = {"classifier": classifier, "leaky": leaky_relu, "pooled": pooled}


@pytest.mark.parametrize("name", SMALL)
def test_every_wire_matters(name):
    """Each wire changed alone breaks a row: none can be chosen freely."""
    form = validate(SMALL[name]())
    found, witness = require_right(form, inputs_of(form.program, 1))
    for wire in range(1, len(witness)):
        right = witness[wire]
        for wrong in (
            (right + 1) % BN254,
            (right - 1) % BN254,
            0,
            1,
            BN254 - 1,
        ):
            if wrong != right:
                witness[wire] = wrong
                assert broken(found, witness), (wire, right, wrong)
        witness[wire] = right


@pytest.mark.parametrize("name", SMALL)
def test_many_samples_have_one_circuit(name):
    form = validate(SMALL[name]())
    texts = set()
    for seed in range(12):
        sample = random_inputs(form.program, seed)
        require_right(form, sample)
        texts.add(files.r1cs(circuit_of(form, sample)))
    assert len(texts) == 1


@pytest.mark.parametrize(
    "name, vector",
    VECTORS,
    ids=[f"{n}-{i}" for i, (n, _) in enumerate(VECTORS)],
)
def test_conformance_vectors(name, vector):
    program, sample = program_of_vector(name, vector)
    form = validate(program)
    try:
        require_right(form, sample)
    except BadInput as problem:
        # Only what the documents leave out may be refused.
        reasons = ("is secret", "bits, more than 10", "more than 62 bits")
        assert any(reason in str(problem) for reason in reasons)


@pytest.mark.parametrize("seed", range(30))
def test_random_programs(seed):
    form = validate(random_program(seed, 10, NAMES))
    try:
        require_right(form, random_inputs(form.program, seed))
    except BadInput as problem:
        assert "cannot express" in str(problem) or "at most" in str(problem)


def test_inputs_beyond_their_interval_have_no_proof():
    form = validate(classifier())
    for outside in (-21, 91, 127, -128):
        sample = inputs_of(form.program, 1)
        sample["x"] = sample["x"].copy()
        sample["x"][0, 2] = outside
        found, witness = written(form, sample)
        assert broken(found, witness)


def test_the_program_id_is_public():
    form = validate(classifier())
    _, witness = written(form, inputs_of(form.program, 1))
    words = b"".join(word.to_bytes(4, "big") for word in witness[1:9])
    assert words.hex() == file_format.program_id(form.program)


def test_a_chain_is_one_division():
    """6 instructions on 14 bits: steps of 256 below 0 and of 64 above, with a line of one step between them."""
    form = validate(leaky_relu())
    found, _ = require_right(form, inputs_of(form.program, 1))
    program_id_and_outputs = 8 + 2
    input_bits, remainder, result = 14 + 1, 11, 8 + 8
    two_bends, sum_and_wire = 2 * 8, 2
    element = input_bits + remainder + result + two_bends + sum_and_wire
    assert len(found.rows) <= program_id_and_outputs + 2 * element


def twice_rounded() -> Program:
    """Return two rescales in a row, which are one division in the first channel and in no other."""
    wide = {**RESCALE, "dtype": "i32"}
    return Program(
        (Input("x", TensorType("i32", (2, 2)), -3_000_000, 3_000_000),),
        (
            np.array([2**30, 1234567891], np.int32),
            np.array([31, 38], np.int8),
            np.array([2**30, 1987654321], np.int32),
            np.array([44, 38], np.int8),
        ),
        (
            Instruction("rescale", (0, 1, 2), wide),
            Instruction("rescale", (5, 3, 4), RESCALE),
        ),
        (Output("y", 6),),
    )


def test_classes_without_a_division_take_every_member():
    form = validate(twice_rounded())
    lowering = lower(form)
    function = runnable(lowering, lowering.functions[6])
    plans = functions._plans(function, step_function(function))
    assert [plan is None for plan in plans].count(True) == 1
    assert len(plans) == 2
    for seed in range(20):
        require_right(form, random_inputs(form.program, seed))


def test_a_table_of_bytes_begins_at_the_least_byte():
    """The index is never below 0, but entry 0 is still that of -128."""
    table = np.random.RandomState(8).randint(-128, 128, 256).astype(np.int8)
    program = Program(
        (Input("x", TensorType("i32", (3,)), 0, 100_000),),
        (np.array([2**30], np.int32), np.array([40], np.int8), table),
        (
            Instruction("rescale", (0, 1, 2), RESCALE),
            Instruction("table", (4, 3)),
        ),
        (Output("y", 5),),
    )
    form = validate(program)
    assert form.intervals[4] == (0, 98)
    for seed in range(5):
        require_right(form, random_inputs(form.program, seed))


def reference_steps(function, low, high):
    x = np.arange(low, high + 1)
    values = function(x)
    kept = np.concatenate([[True], np.diff(values) != 0])
    return x, values, x[kept], values[kept]


@pytest.mark.parametrize("seed", range(40))
def test_a_fitted_division_gives_the_function(seed):
    random = np.random.RandomState(seed)
    low, high = -int(random.randint(1, 9000)), int(random.randint(1, 9000))
    slope, lower = random.randint(2**29, 2**31, 2)
    shift = int(random.randint(34, 43))
    sign = 1 if random.randint(2) else -1
    clip = sorted(random.randint(-200, 200, 2))

    def function(x):
        line = np.where(x >= 0, slope, lower if seed % 2 else slope)
        return np.clip((sign * x * line + 2 ** (shift - 1)) >> shift, *clip)

    x, values, starts, levels = reference_steps(function, low, high)
    if len(starts) < 2:
        return
    found = fit(starts, levels, low, high)
    assert seed % 2 or found is not None
    if found is None:
        return
    u = -x if found.turned else x
    by_line = [
        (line.slope * u + line.offset) >> line.bits for line in found.lines
    ]
    quotient = by_line[0]
    for other, start in zip(by_line[1:], found.starts, strict=True):
        quotient = np.where(u >= start, other, quotient)
    assert np.array_equal(np.clip(quotient, found.low, found.high), values)
    assert found.least == quotient[np.argmin(u)]
    assert found.most == quotient[np.argmax(u)]
    # The value chooses the line: no other value fits the line that it chooses.
    ends = [-(2**62), *found.bends, 2**62]
    fitting = sum(
        ((ends[n] <= line) & (line < ends[n + 1])).astype(int)
        for n, line in enumerate(by_line)
    )
    assert (fitting == 1).all()


@pytest.mark.parametrize("least", range(16))
def test_at_least(least):
    made = system.System()
    numbers = np.arange(16)
    bits = made.bits(numbers, 4)
    found = system.at_least(made, bits, least)
    assert found.values.tolist() == (numbers >= least).tolist()


def test_a_natural_number_has_no_sign():
    made = system.System()
    x = made.new(np.array([-1]))
    made.is_natural(x, 3)
    witness = made.witness()
    assert any(
        int((a.factors * witness[a.wires]).sum() + a.constants.sum())
        != int((c.factors * witness[c.wires]).sum() + c.constants.sum())
        for a, _, c in made.blocks[1:]
    )
    assert constant(3).values == 3


def test_refusals_name_every_instruction():
    type_ = TensorType("i32", (2,))
    pair = Input("x", type_, 1, 90), Input("y", type_, 1, 90)
    program = Program(
        pair, (), (Instruction("intdiv", (0, 1)),), (Output("z", 2),)
    )
    with pytest.raises(BadInput, match=r"intdiv \(%2\): it has no rows"):
        export(validate(program), "r1cs", "p")


def test_a_large_circuit_is_refused_with_its_count(monkeypatch):
    form = validate(classifier())
    rows = circuit_of(form, inputs_of(form.program, 1)).system.rows
    monkeypatch.setattr(system, "MOST_ROWS", rows - 1)
    with pytest.raises(BadInput, match=f"needs {rows:,} constraints"):
        circuit_of(form, inputs_of(form.program, 1))


def test_the_files_of_an_export():
    form = validate(classifier())
    made = export(form, "r1cs", "digits")
    assert set(made.contents) == {"README.md", "digits.r1cs", "sample.wtns"}
    found = read_constraints(made.binaries["digits.r1cs"])
    witness = read_witness(made.binaries["sample.wtns"])
    assert broken(found, witness) == []
    assert made.facts == {
        "constraints": len(found.rows),
        "wires": found.wires,
        "public": 11,
        "private": 6,
    }
    assert "| 9 to 11 | y, i8[1,3] |" in made.files["README.md"]


def test_a_proof_of_another_program(tmp_path):
    path = tmp_path / "p.cvm"
    file_format.write(classifier(), path)
    proof = tmp_path / "proof"
    proof.mkdir()
    (proof / "public.json").write_text(json.dumps(["5"] * 11))
    key = tmp_path / "key.json"
    key.write_text(json.dumps(KEY))
    found = cvm("verify-proof", path, proof, "--key", key)
    assert found.exit_code == 1
    assert found.stdout.startswith("the signals name another program: 00000005")
    for text in ("{", "[1]", '["-1"]', f'["{BN254}"]', '["1e3"]', "[" * 5000):
        (proof / "public.json").write_text(text)
        text = said(cvm("verify-proof", path, proof, "--key", key), 2)
        assert "public.json" in text


@pytest.mark.parametrize(
    "name, value, command",
    [
        ("vk_alpha_1", ["1", "2", "1"], "powersoftau contribute"),
        ("vk_delta_2", KEY["vk_gamma_2"], "zkey contribute"),
        ("vk_delta_2", None, "not a verification key"),
    ],
)
def test_a_key_without_contributions_is_refused(tmp_path, name, value, command):
    path, key = tmp_path / "p.cvm", tmp_path / "key.json"
    file_format.write(classifier(), path)
    content = {**KEY, name: value}
    if value is None:
        del content[name]
    key.write_text(json.dumps(content))
    (tmp_path / "public.json").write_text(json.dumps(["5"] * 11))
    text = said(cvm("verify-proof", path, tmp_path, "--key", key), 2)
    assert command in text and "key.json" in text


def test_keys_of_proofs_must_exist(tmp_path):
    path, x = tmp_path / "p.cvm", tmp_path / "x.npy"
    file_format.write(classifier(), path)
    np.save(x, np.zeros((1, 6), DTYPES["i8"]))
    words = ("prove", path, "--input", x, "--key", tmp_path / "no.zkey")
    text = said(cvm(*words, "-o", tmp_path / "out"), 2)
    assert "No such file or directory" in text
    assert not (tmp_path / "out").exists()
