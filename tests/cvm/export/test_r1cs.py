"""Constraints hold for the reference's outputs and for nothing else; the files are read from their description alone."""

from __future__ import annotations

import itertools
import json
from itertools import islice

import numpy as np
import pytest

from cvm.errors import BadInput
from cvm.export.r1cs import files, functions, sums, system
from cvm.export.r1cs.circuit import circuit_of
from cvm.export.r1cs.disclosure import Disclosure
from cvm.export.r1cs.fit import Quotient, fit
from cvm.export.r1cs.fractions import Division, divisions
from cvm.export.r1cs.rules import RULES
from cvm.export.r1cs.secret import constant
from cvm.export.r1cs.stairs import Stairs
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
    free_wires,
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
    made = circuit_of(form, sample, everything(form))
    found = read_constraints(files.r1cs(made))
    return found, read_witness(files.witness(made))


def everything(form):
    """Show inputs and outputs: test_r1cs_commitments.py is about hiding them."""
    names = [x.name for x in (*form.program.inputs, *form.program.outputs)]
    return Disclosure.chosen(form.program, names)


def require_right(form, sample):
    found, witness = written(form, sample)
    assert found.wires == len(witness)
    assert broken(found, witness) == []
    expected = interpreter.run(form, sample)
    names = [item.name for item in form.program.outputs]
    flat = [int(x) for name in names for x in expected[name].reshape(-1)]
    flat += [
        int(x)
        for item in form.program.inputs
        for x in sample[item.name].reshape(-1)
    ]
    # the program id, bits that are 1 for what is public, outputs and inputs
    assert found.public_outputs == 9 + len(flat)
    assert witness[9] == 2 ** len([*names, *form.program.inputs]) - 1
    assert [signed(x) for x in witness[10 : 10 + len(flat)]] == flat
    return found, witness


def classifier() -> Program:
    """Return a dense layer of 6 to 3 and a rescale by a third."""
    rng = np.random.RandomState(5)
    weights = rng.randint(-9, 10, (3, 6)).astype(np.int8)
    bias = np.array([5, -70, 12], np.int32)
    multiplier = np.array([1431655765], np.int32)
    shift = np.array([32], np.int8)
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


def twice_rounded(dtype="i8", shift=35) -> Program:
    """Return two rescales in a row, which are one division in the first channel and in no other."""
    wide = {**RESCALE, "dtype": "i32"}
    return Program(
        (Input("x", TensorType("i32", (1, 2)), -3_000_000, 3_000_000),),
        (
            np.array([2**30, 1401483439], np.int32),
            np.array([31, 40], np.int8),
            np.array([2**30, 2050155716], np.int32),
            np.array([44, shift], np.int8),
        ),
        (
            Instruction("rescale", (0, 1, 2), wide),
            Instruction("rescale", (5, 3, 4), {**RESCALE, "dtype": dtype}),
        ),
        (Output("y", 6),),
    )


def divided_pooled_and_indexed() -> Program:
    """Return quotients of two secrets, means of windows and the indices of the greatest, of which two are equal."""
    window = {"kernel": (2, 2), "stride": (1, 1), "pad": (1, 0, 0, 0)}
    zero_points = {"input_zp": -3, "output_zp": 2}
    return Program(
        (
            Input("x", TensorType("i32", (3,)), -50, 70),
            Input("y", TensorType("i32", (3,)), -9, -2),
            Input("z", TensorType("i8", (1, 2, 2, 1)), -10, 10),
        ),
        (),
        (
            Instruction("intdiv", (0, 1)),  # %3
            Instruction("avg_pool2d", (2,), {**window, **zero_points}),
            Instruction("argmax", (0,), {"axis": 0}),
            Instruction("argmax", (2,), {"axis": 2}),
        ),
        (
            Output("quotients", 3),
            Output("means", 4),
            Output("greatest", 5),
            Output("columns", 6),
        ),
    )


SMALL = {
    "classifier": classifier,
    "leaky": leaky_relu,
    "pooled": pooled,
    "twice": twice_rounded,
    "divided": divided_pooled_and_indexed,
}


@pytest.mark.parametrize("name", SMALL)
def test_every_wire_matters(name):
    """Each wire changed alone breaks a row: none can be chosen freely."""
    form = validate(SMALL[name]())
    found, witness = require_right(form, inputs_of(form.program, 1))
    assert free_wires(found, witness, ()) == []


@pytest.mark.parametrize("name", SMALL)
def test_many_samples_have_one_circuit(name):
    form = validate(SMALL[name]())
    texts = set()
    for seed in range(12):
        sample = random_inputs(form.program, seed)
        require_right(form, sample)
        texts.add(files.r1cs(circuit_of(form, sample, everything(form))))
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
        reasons = (
            "is secret",
            "its divisor may be",
            "it writes at most",
            "bits, more than 10",
            "more than 62 bits",
        )
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
    """6 instructions on 14 bits: two lines of one remainder, and a bit that names the one that holds."""
    form = validate(leaky_relu())
    found, _ = require_right(form, inputs_of(form.program, 1))
    program_id_and_outputs = 8 + 1 + 2
    input_bits, remainder, result = 14, 11, 8
    which, at_bend, both_lines = 1, 2, 1
    element = input_bits + remainder + result + which + at_bend + both_lines
    assert len(found.rows) <= program_id_and_outputs + 2 * element


def plans_of(program):
    """Return the plans of %6 as a function of the input."""
    lowering = lower(validate(program))
    function = runnable(lowering, lowering.functions[6])
    return functions.plans_of(function, step_function(function))


def test_steps_that_no_line_has_are_climbed():
    line, steps = plans_of(twice_rounded())
    assert isinstance(line, Quotient)
    assert isinstance(steps, Stairs)


def test_classes_without_a_plan_take_every_member():
    """More steps than are listed."""
    program = twice_rounded("i16", 31)
    assert plans_of(program)[1] is None
    for seed in range(20):
        form = validate(program)
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


@pytest.mark.parametrize("seed", range(40))
def test_a_fitted_line_gives_the_function(seed):
    """Of every argument one value, of all in reach, leaves a remainder that fits."""
    random = np.random.RandomState(seed)
    low, high = -int(random.randint(1, 9000)), int(random.randint(1, 9000))
    slope = int(random.randint(2**29, 2**31))
    shift = int(random.randint(34, 43))
    sign = 1 if random.randint(2) else -1
    least, most = sorted(random.randint(-200, 200, 2).tolist())
    x = np.arange(low, high + 1)
    exact = (sign * x * slope + 2 ** (shift - 1)) >> shift
    values = np.clip(exact, least, most)
    kept = np.concatenate([[True], np.diff(values) != 0])
    if kept.sum() < 2:
        return
    found = fit(x[kept], values[kept], low, high)
    assert found is not None
    line = found.line
    assert line.most <= line.step + line.step // 2
    inside = (values > found.low) & (values < found.high)
    for y in range(found.low, found.high + 1):
        rest = line.slope * x + line.offset - line.step * y
        fitting = (rest >= 0) & (rest <= line.most)
        assert (fitting <= (values == y)).all()
        assert (fitting == (values == y))[inside].all()
        beyond = rest // (line.most + 1)
        if y == found.high:
            assert (beyond[values == y] <= found.over).all()
            assert (beyond[values < y] < 0).all()
        if y == found.low:
            assert (-beyond[values == y] <= found.under).all()
            assert (beyond[values > y] > 0).all()


@pytest.mark.parametrize("seed", range(60))
def test_a_division_with_a_smaller_divisor_is_the_same(seed):
    random = np.random.RandomState(seed)
    bits = int(random.randint(3, 24))
    slope, offset = (int(n) for n in random.randint(-(2**bits), 2**bits, 2))
    low = -int(random.randint(0, 300))
    high = low + int(random.randint(1, 400))
    given = Division(slope, offset, 2**bits)
    x = np.arange(low, high + 1)
    expected = (slope * x + offset) >> bits
    steps = []
    for found in islice(divisions(given, low, high), 6):
        steps.append(found.step)
        assert found.step <= given.step
        quotients = (found.slope * x + found.offset) // found.step
        assert np.array_equal(quotients, expected)
    assert steps == sorted(steps)


@pytest.mark.parametrize("most", range(1, 40))
def test_weights_make_up_every_number_and_no_other(most):
    weights = system.weights_of(most)
    assert len(weights) == most.bit_length()
    sums = {
        int((weights * digits).sum())
        for digits in itertools.product((0, 1), repeat=len(weights))
    }
    assert sums == set(range(most + 1))


@pytest.mark.parametrize("most", [1, 2, 3, 4, 5, 8, 11])
def test_a_range_admits_its_numbers_alone(most):
    """By every choice of bits: 0 to `most` have one that fits, and no number beyond has any."""
    for number in range(-3, most + 4):
        made = system.System()
        x = made.new(np.array([number]))
        system.in_range(made, x, system.weights_of(most))
        free = made.wires - 2
        choices = itertools.product((0, 1), repeat=free)
        fits = [
            all(holds(row, [1, number, *bits]) for row in made.blocks)
            for bits in choices
        ]
        assert any(fits) == (0 <= number <= most)


def holds(row, witness):
    """Whether the rows of a block hold for integers."""
    witness = np.array(witness)
    a, b, c = (
        (part.factors * witness[part.wires]).sum(-1) + part.constants
        for part in row
    )
    return bool((a * b == c).all())


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
    program = Program(
        (Input("x", TensorType("i32", (2,)), 1, 90),),
        (),
        (Instruction("argsort", (0,), {"descending": False}),),
        (Output("z", 1),),
    )
    with pytest.raises(BadInput, match=r"argsort \(%1\): it has no rows"):
        export(validate(program), "r1cs", "p")


def test_places_that_no_input_changes_are_known():
    """A gather whose indices are computed from constants, as trees have them."""
    program = Program(
        (Input("x", TensorType("i8", (4, 1)), -9, 9),),
        (np.array([3, 0, 3], np.int32),),
        (
            Instruction("reshape", (1,), {"shape": (1, 3)}),
            Instruction("reshape", (0,), {"shape": (1, 4, 1)}),
            Instruction("gather", (3, 2)),
        ),
        (Output("y", 4), Output("places", 2)),
    )
    form = validate(program)
    _, witness = require_right(
        form, {"x": np.array([[5], [6], [7], [-8]], "i1")}
    )
    assert [signed(n) for n in witness[10:13]] == [-8, 5, -8]


def test_quotients_means_and_indices():
    form = validate(divided_pooled_and_indexed())
    sample = {
        "x": np.array([-50, 70, 70], np.int32),
        "y": np.array([-9, -2, -7], np.int32),
        "z": np.array([[[[3], [3]], [[-10], [10]]]], np.int8),
    }
    _, witness = require_right(form, sample)
    found = [signed(n) for n in witness[10 : 10 + 3 + 2 + 1 + 2]]
    assert found[:3] == [5, -35, -10]
    # (6 + 6) / 2 and (6 + 6 - 7 + 13) / 4, and 2
    assert found[3:5] == [8, 7]
    assert found[5:] == [1, 0, 1]


def test_a_large_circuit_is_refused_with_its_count(monkeypatch):
    form = validate(classifier())
    rows = circuit_of(form, inputs_of(form.program, 1)).system.rows
    monkeypatch.setattr(system, "MOST_ROWS", rows - 1)
    with pytest.raises(BadInput, match=f"needs {rows:,} constraints"):
        circuit_of(form, inputs_of(form.program, 1))


def test_sums_of_too_many_terms_are_refused_before_they_are_formed(monkeypatch):
    """A convolution of a network of spectrograms took 24 gigabytes, until the system killed the command."""
    monkeypatch.setattr(system, "MOST_TERMS", 17)
    monkeypatch.setattr(sums, "_weighted", None)
    form = validate(classifier())
    why = r"dense \(%5\): it has 18 terms, and a whole program at most 17"
    with pytest.raises(BadInput, match=why):
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
        "public": 13,
        "private": 7,
    }
    readme = made.files["README.md"]
    assert "| 10 to 12 | y, i8[1,3] |" in readme
    assert "| 13 | the commitment of x, i8[1,6] |" in readme


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
