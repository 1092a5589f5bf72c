"""Inputs and outputs that a proof hides: bound by Poseidon, whose judge is npm's poseidon-lite 0.3.0."""

from __future__ import annotations

import json
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from cvm.errors import BadInput
from cvm.export.r1cs import files, opening, poseidon, signals, snarkjs
from cvm.export.r1cs.circuit import circuit_of
from cvm.export.r1cs.commitment import commitment_of
from cvm.export.r1cs.disclosure import Disclosure
from cvm.export.r1cs.opening import Opening
from cvm.export.targets import export
from cvm.file import format as file_format
from cvm.program import Input, Instruction, Output, Program, TensorType
from cvm.proof.validate import validate
from cvm.reference import interpreter
from tests.cvm.export.test_r1cs import classifier
from tests.support.command import cvm, said
from tests.support.cvm_programs import random_inputs
from tests.support.r1cs_reader import (
    BN254,
    broken,
    free_wires,
    read_constraints,
    read_witness,
)

ROOT = Path(__file__).resolve().parents[3]
PACKAGES = ROOT / ".node-proof" / "node_modules"
SALT = 2**240 + 12345
# node -e "console.log(require('poseidon-lite').poseidon4([1n, 2n, 3n, 4n]).toString(16))"
FROM_POSEIDON_LITE = {
    (
        1,
        2,
        3,
        4,
    ): 0x299C867DB6C1FDD79DCEFA40E4510B9837E60EBB1CE0663DBAA525DF65250465,
    (
        0,
        0,
        0,
        0,
    ): 0x532FD436E19C70E51209694D9C215250937921B8B79060488C1206DB73E9946,
    (BN254 - 1, BN254 - 2, 2**248, 5): (
        0x19AE8569CB056259B3D151DF446BB871A521BC273FAD66BCABD1989B9AB97284
    ),
}
FROM_POSEIDON_LITE_BY_ARRAY = [
    (
        "i8",
        (5,),
        0x1803CE18517A78D1D93902F30A5EEF77062FF0CF32D15DD6AF839E89873F9783,
    ),
    (
        "u8",
        (129, 130),
        0x28461468C72ECEFD6DBB9C64683BD8C297EC1D8EF33D8D7C6D34807B0E2D1B57,
    ),
    (
        "i32",
        tuple(range(-10, 10)),
        0x15780E28232AB1C849730B13027A0ACC058816DBAF1CDA64F798817430EF093C,
    ),
]
JUDGE = """
const {poseidon4} = require(process.argv[1]);
let [salt, low, bits, code, ...elements] = process.argv.slice(2).map(BigInt);
const each = Number(248n / bits);
const packs = [];
const tag = (code << 32n) + BigInt(elements.length);
for (let bit = 63n; bit >= 0n; bit -= bits)
  elements.unshift(low + ((tag >> (bit + 1n - bits)) % (1n << bits)));
elements.forEach((x, place) => {
  if (place % each === 0) packs.push(0n);
  packs[packs.length - 1] += (x - low) << (bits * BigInt(place % each));
});
packs[0] += 2n ** 248n;
for (let at = 0; at < packs.length; at += 3)
  salt = poseidon4([salt, ...[0, 1, 2].map((n) => packs[at + n] ?? 0n)]);
console.log(salt.toString(16).padStart(64, "0"));
"""


def several() -> Program:
    """Return a sum and a comparison of inputs of three dtypes."""
    return Program(
        (
            Input("x", TensorType("i32", (2, 5)), -1000, 2000),
            Input("z", TensorType("i32", (2, 5)), -(2**29), 2**29),
            Input("b", TensorType("bool", (3,)), 0, 1),
        ),
        (),
        (
            Instruction("add", (0, 1)),
            Instruction("greater", (0, 1)),
            Instruction("logical_not", (2,)),
        ),
        (Output("sum", 3), Output("more", 4), Output("b", 5)),
    )


def contents(form, sample, names, salts):
    shown = Disclosure.chosen(form.program, names)
    made = circuit_of(form, sample, shown, salts)
    return read_constraints(files.r1cs(made)), read_witness(files.witness(made))


@pytest.mark.parametrize("elements", FROM_POSEIDON_LITE)
def test_the_hash_is_the_one_that_others_compute(elements):
    assert poseidon.digest(elements) == FROM_POSEIDON_LITE[elements]


@pytest.mark.parametrize(
    "names, outputs, inputs",
    [
        ((), ("y",), ()),
        (("none",), (), ()),
        (("x",), (), ("x",)),
        (("x", "y"), ("y",), ("x",)),
    ],
)
def test_signals_hold_arrays_or_commitments(names, outputs, inputs):
    form = validate(classifier())
    salts = Opening({"x": SALT}, {"y": SALT + 1})
    sample = random_inputs(form.program, 3)
    results = interpreter.run(form, sample)
    found, witness = contents(form, sample, names, salts)
    assert broken(found, witness) == []
    public = witness[1 : 1 + found.public_outputs]
    shown = signals.disclosed(form, public)
    assert set(shown.outputs) == set(outputs)
    assert set(shown.inputs) == set(inputs)
    for name in outputs:
        assert np.array_equal(shown.outputs[name], results[name])
    for name in inputs:
        assert np.array_equal(shown.inputs[name], sample[name])
    plain = opening.commitments(form, salts, sample, results)
    bound = {
        what: {name: d for name, d in digests.items() if name not in known}
        for (what, digests), known in zip(
            plain.items(), (inputs, outputs), strict=True
        )
    }
    assert shown.commitments == bound


@pytest.mark.parametrize("names", [(), ("none",), ("x", "more")])
def test_every_wire_matters(names):
    form = validate(several())
    salts = Opening({"x": SALT, "b": 5}, {"sum": SALT - 1})
    sample = random_inputs(form.program, 8)
    found, witness = contents(form, sample, names, salts)
    assert broken(found, witness) == []
    assert free_wires(found, witness, (2**200 + 77,)) == []


def test_constraints_depend_on_what_is_public_and_on_no_sample_or_salt():
    form = validate(classifier())
    texts = {
        names: {
            files.r1cs(
                circuit_of(
                    form,
                    random_inputs(form.program, seed),
                    Disclosure.chosen(form.program, names),
                    Opening({"x": seed}, {"y": seed}),
                )
            )
            for seed in range(3)
        }
        for names in ((), ("none",), ("x",), ("x", "y"))
    }
    assert [len(found) for found in texts.values()] == [1] * 4
    assert len(set.union(*texts.values())) == 4


def test_another_array_or_salt_has_another_commitment():
    x = np.arange(-20, 50, dtype=np.int8)
    found = {commitment_of(x, "i8", SALT), commitment_of(x, "i8", SALT + 1)}
    for place in (0, 30, 31, 69):
        changed = x.copy()
        changed[place] ^= 1
        found.add(commitment_of(changed, "i8", SALT))
    assert len(found) == 6


@pytest.mark.parametrize(
    "dtype, numbers, expected", FROM_POSEIDON_LITE_BY_ARRAY
)
def test_a_commitment_is_recorded(dtype, numbers, expected):
    assert commitment_of(np.array(numbers), dtype, SALT) == expected


def test_dtype_and_count_are_bound():
    found = {
        commitment_of(np.array(numbers), dtype, SALT)
        for dtype, numbers in (
            ("i8", [5]),
            ("i8", [5, -128]),
            ("i8", [5, -128, -128]),
            ("i8", [1, 2]),
            ("u8", [129, 130]),
            ("bool", [0]),
            ("u8", [0]),
        )
    }
    assert len(found) == 7


def test_no_salt_opens_the_end_of_an_array():
    """As the hash of its beginning would, even where the end begins with its own tag."""
    start, end = np.arange(93 - 8, dtype=np.uint8), np.arange(20, dtype=np.uint8)  # fmt: skip
    tag = np.frombuffer((2 << 32 | end.size).to_bytes(8, "little"), np.uint8)
    whole = np.concatenate([start, tag, end])
    first = (2 << 32 | whole.size).to_bytes(8, "little") + bytes(start)
    packs = [int.from_bytes(first[at : at + 31], "little") for at in (0, 31, 62)]  # fmt: skip
    bound = commitment_of(whole, "u8", SALT)
    for mark in (0, 2**248):
        salt = poseidon.digest([SALT, packs[0] + mark, *packs[1:]])
        assert bound != commitment_of(end, "u8", salt)


def test_bits_of_many_inputs_take_more_words():
    x = TensorType("i8", (1,))
    program = Program(
        tuple(Input(f"x{n}", x, 0, 1) for n in range(40)),
        (),
        (Instruction("add", (0, 1)),),
        (Output("y", 40),),
    )
    shown = Disclosure.chosen(program, ["x0", "x39"])
    assert shown.words.tolist() == [0b10, 1 << (40 - 32)]
    assert Disclosure.of_words(program, [0b10, 1 << 8]) == shown
    with pytest.raises(BadInput, match="than the program has"):
        Disclosure.of_words(program, [0, 1 << 9])


def test_signals_that_do_not_fit_are_refused():
    form = validate(classifier())
    right = [0] * 8 + [1, 3, 4, 5, 77]  # the output is public
    assert signals.disclosed(form, right).outputs["y"].tolist() == [[3, 4, 5]]
    for wrong, words in (
        (right[:-1], "12 public signals; .* has 13"),
        ([*right[:8], 4, *right[9:]], "more inputs and outputs public"),
        ([*right[:8], 2**32, *right[9:]], "no word of 32 bits"),
        ([*right[:9], 128, *right[10:]], "output 'y': a signal is no i8"),
    ):
        with pytest.raises(BadInput, match=words):
            signals.disclosed(form, wrong)


def test_a_name_of_an_input_and_an_output_is_told_apart():
    """`b` is both; an item called none is shown by its longer name alone."""
    program = several()
    for names, inputs, outputs in (
        (["input:b"], (False, False, True), (False,) * 3),
        (["output:b", "x"], (True, False, False), (False, False, True)),
        (["output:sum", "input:z"], (False, True, False), (True, False, False)),
        (["none"], (False,) * 3, (False,) * 3),
    ):
        assert Disclosure.chosen(program, names) == Disclosure(inputs, outputs)
    with pytest.raises(BadInput, match="b: it may stand for input:b or output:b"):  # fmt: skip
        Disclosure.chosen(program, ["x", "b"])
    with pytest.raises(BadInput, match="input:sum: the program has b, more"):
        Disclosure.chosen(program, ["input:sum"])
    named = replace(program, outputs=(Output("none", 3), Output("y", 4)))
    hidden = Disclosure.chosen(named, ["none"])
    assert not any([*hidden.inputs, *hidden.outputs])
    assert Disclosure.chosen(named, ["output:none"]).outputs == (True, False)
    assert Disclosure.chosen(named, ["none", "y"]).outputs == (True, True)


def test_names_that_there_are_not_are_refused(tmp_path):
    file_format.write(classifier(), tmp_path / "p.cvm")
    words = ("export", tmp_path / "p.cvm", "-o", tmp_path / "out", "--to")
    text = said(cvm(*words, "r1cs", "--public", "w"), 2)
    assert "--public w: the program has x, y" in text
    text = said(cvm(*words, "c", "--public", "y"), 2)
    assert "the target c has no option --public" in text
    assert not (tmp_path / "out").exists()
    assert cvm(*words, "r1cs", "--public", "x").exit_code == 0
    assert "--public x`" in (tmp_path / "out" / "README.md").read_text()


@pytest.fixture(name="paths")
def _paths(tmp_path):
    file_format.write(classifier(), tmp_path / "p.cvm")
    np.save(tmp_path / "x.npy", np.array([[1, -20, 90, 4, 5, 6]], np.int8))
    return tmp_path


def committed(paths, *words):
    return cvm(
        *("commit", paths / "p.cvm", "--input", paths / "x.npy"),
        *("--opening", paths / "salts.json", *words),
    )


def test_a_commitment_can_be_opened(paths):
    """With the same salts and numbers anybody gets it again; with other numbers, another one."""
    first = committed(paths)
    assert first.exit_code == 0 and "keep it" in first.stderr
    again = json.loads(committed(paths, "--json").stdout)
    name, digest = first.stdout.splitlines()[0].split(": committed ")
    assert name == "input x" and again["inputs"] == {"x": digest}
    salts = json.loads((paths / "salts.json").read_text())
    salt = int(salts["inputs"]["x"], 16)
    x = np.load(paths / "x.npy")
    assert commitment_of(x, "i8", salt) == int(digest, 16)
    x[0, 0] += 1
    np.save(paths / "x.npy", x)
    other = json.loads(committed(paths, "--json").stdout)
    assert other["inputs"] != again["inputs"]
    (paths / "salts.json").unlink()
    assert json.loads(committed(paths, "--json").stdout) != other


def test_no_proof_is_written_without_its_salts(paths, monkeypatch):
    """A proof whose salts are lost binds to what nobody can open."""
    folder = paths / "salts"
    folder.mkdir()
    (paths / "p.zkey").write_bytes(b"zkey")

    def prove(_key, _witness):
        folder.rmdir()  # as somebody else may, meanwhile
        return {"proof.json": "{}", "public.json": "[]"}

    monkeypatch.setattr(snarkjs, "prove", prove)
    given = ("--input", paths / "x.npy", "--key", paths / "p.zkey")
    opened = ("--opening", folder / "salts.json", "-o", paths / "proof")
    said(cvm("prove", paths / "p.cvm", *given, *opened), 2)
    assert not (paths / "proof").exists()


@pytest.mark.parametrize(
    "change, words",
    [
        ({"inputs": {}}, "no salt for the input 'x'"),
        ({"outputs": {}}, "no salt for the output 'y'"),
        ({"inputs": {"x": "ff" * 32}}, "must be below 2^248"),
        ({"inputs": {"x": "5"}}, "64 lower-case hexadecimal digits"),
        ({"format": "cvm-receipt-1"}, "expected 'cvm-opening-1'"),
    ],
)
def test_salts_that_are_none_are_refused(paths, change, words):
    committed(paths)
    right = json.loads((paths / "salts.json").read_text())
    (paths / "salts.json").write_text(json.dumps({**right, **change}))
    assert words in said(committed(paths), 2)


def test_the_rows_that_a_commitment_takes():
    form = validate(classifier())
    counts = [
        export(form, "r1cs", "p", {"--public": names}).facts["constraints"]
        for names in (("x", "y"), ("y",), ("none",))
    ]
    # three rows a power; the first cell is known in the first round; the three elements and the digest; the signal
    powers = 7 * 5 + 4 + 60
    assert counts[1] - counts[0] == 3 * powers + 3 + 1 + 1
    # and of the output no rows for its elements
    assert counts[2] - counts[1] == 3 * powers + 3 + 1 + 1 - 3


@pytest.mark.skipif(
    shutil.which("node") is None or not PACKAGES.is_dir(),
    reason="poseidon-lite is not here: `make test-proof` installs it",
)
@pytest.mark.parametrize(
    "dtype, low, bits, code",
    [
        ("bool", 0, 1, 0),
        ("i8", -128, 8, 1),
        ("u8", 0, 8, 2),
        ("i16", -(2**15), 16, 3),
        ("i32", -(2**31), 32, 4),
    ],
)
@pytest.mark.parametrize("count", [1, 7, 31, 62, 63, 250])
def test_commitments_are_those_of_poseidon_lite(dtype, low, bits, code, count):
    random = np.random.RandomState(count)
    numbers = low + random.randint(0, 2**bits, count, np.int64)
    words = [
        *("node", "-e", JUDGE, str(PACKAGES / "poseidon-lite")),
        *(f"{n}" for n in (SALT, low, bits, code, *numbers)),
    ]
    done = subprocess.run(words, check=True, capture_output=True, text=True)
    assert done.stdout.strip() == f"{commitment_of(numbers, dtype, SALT):064x}"
