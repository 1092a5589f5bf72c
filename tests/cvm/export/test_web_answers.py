"""Exported WebAssembly gives the bytes of the reference under node, with and without vectors, and the same receipts."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from cvm.file import format as file_format
from cvm.program import Meaning, Metadata
from cvm.proof.validate import validate
from tests.cvm.export.test_c_source import HOSTILE, convolution, sums
from tests.support.command import cvm
from tests.support.example_programs import all_vectors, random_and_golden
from tests.support.web_programs import WebProgram, needs_web, node

pytestmark = needs_web()
BUILDS = pytest.mark.parametrize(
    "vectors", [False, True], ids=["plain", "simd"]
)


@BUILDS
def test_every_vector_gives_its_answer(tmp_path, vectors):
    form, sample = all_vectors()
    written = WebProgram.write(form, tmp_path, vectors=vectors)
    assert written.differing([sample]) == []


@BUILDS
def test_random_and_golden_programs_give_the_bytes_of_the_reference(
    tmp_path, vectors
):
    form, samples = random_and_golden(10, of_each=5, samples=2)
    written = WebProgram.write(form, tmp_path, vectors=vectors)
    assert written.differing(samples) == []


def test_names_of_strangers_keep_their_order_in_a_receipt(tmp_path):
    names = (*HOSTILE, "__proto__", "toString", "\U0001f600", "\uffff", "7")
    random = np.random.default_rng(1)
    sample = {
        name: random.integers(-9, 10, 2).astype(np.int32) for name in names
    }
    written = WebProgram.write(validate(sums(names)), tmp_path)
    assert written.differing([sample]) == []
    assert written.differing([dict(reversed(sample.items()))]) == []


@pytest.fixture
def described(tmp_path):
    """A program with scales, as a file and as a package."""
    meanings = {"x": Meaning(0.25, -3, "x")}
    outputs = {name: Meaning(0.5, 1, name) for name in ("y", "again", "first")}
    metadata = Metadata(inputs=meanings, outputs=outputs)
    program = replace(convolution(), metadata=metadata)
    path = tmp_path / "p.cvm"
    file_format.write(program, path)
    return path, WebProgram.write(validate(program), tmp_path / "web")


@pytest.mark.parametrize("shape", [(1, 1, 9, 1), (3, 1, 9, 1), (3, 1, 1, 9, 1)])
@pytest.mark.parametrize("real", [False, True])
def test_a_receipt_is_the_file_that_cvm_writes(
    described, tmp_path, shape, real
):
    path, written = described
    values = np.random.default_rng(2).integers(-100, 101, shape)
    if real:
        values = values * 0.2713  # some lie outside
    np.save(tmp_path / "x.npy", values)
    receipt = tmp_path / "r.json"
    words = ["--real"] if real else []
    source = ("--input", tmp_path / "x.npy", "--json", *words)
    result = cvm("run", path, *source, "--receipt", receipt)
    assert result.exit_code == 0, result.output
    found = written.run([{"x": values}], real=real)
    assert found["receipts"] == [receipt.read_text()]
    assert ("clipped" in receipt.read_text()) == real
    expected = json.loads(result.stdout)["outputs"]
    for name, output in found["outputs"][0].items():
        flat = np.ravel(expected[name]["values"]).tolist()
        assert output["values"] == flat
        assert output["shape"] == expected[name]["shape"]


def test_real_numbers_count_the_steps_of_their_columns(tmp_path):
    program = sums(("x",))
    meanings = {"x": Meaning(0.25, 1, "x", (1.0, 8.0))}
    outputs = {item.name: Meaning(1.0, 0) for item in program.outputs}
    endless = {"endless:x": ""}
    metadata = Metadata(meanings, outputs, provenance=endless)
    program = replace(program, metadata=metadata)
    file_format.write(program, tmp_path / "p.cvm")
    values = np.array([9.3, 5.1])  # the first is beyond the interval
    np.save(tmp_path / "x.npy", values)
    receipt = tmp_path / "r.json"
    result = cvm("run", tmp_path / "p.cvm", "--input", tmp_path / "x.npy", "--real", "--receipt", receipt)  # fmt: skip
    assert result.exit_code == 0, result.output
    written = WebProgram.write(validate(program), tmp_path / "web")
    found = written.run([{"x": values}], real=True)
    assert found["receipts"] == [receipt.read_text()]
    assert '"clipped": 0' in receipt.read_text()


@pytest.mark.parametrize(
    ("meaning", "refused"),
    [
        (Meaning(1.0, 0), True),
        (Meaning(0.5, 0), False),
        (Meaning(1.0, 1), False),
        (Meaning(1.0, 0, channels=(1.0, 0.5)), False),
    ],
)
def test_an_input_of_integers_takes_no_fractions(tmp_path, meaning, refused):
    program = sums(("x",))
    outputs = {item.name: Meaning(1.0, 0) for item in program.outputs}
    metadata = Metadata({"x": meaning}, outputs)
    program = replace(program, metadata=metadata)
    written = WebProgram.write(validate(program), tmp_path / "web")
    (written.folder / "fraction.js").write_text(
        'import { load } from "./index.js";\nconst program = await load();\n'
        "try { program.run([1, 0.5], { real: true }); console.log(null); }\n"
        "catch (problem) { console.log(problem.message); }\n"
    )
    said = node(written.folder, "fraction.js").strip()
    words = "element 1: value 0.5 is a fraction; this input takes integers -"
    assert (words in said) == refused
    assert refused or said == "null"


COMPARES = """\
import { readFileSync } from "node:fs";
import { load } from "./index.js";
const program = await load();
const run = (value) => program.run(new Int8Array(9).fill(value)).receipt;
const [one, other] = [run(1), run(2)];
const mismatch = (change) => {
  const copy = structuredClone(one);
  change(copy);
  return program.compare(JSON.stringify(copy), one);
};
console.log(JSON.stringify([
  program.compare(one, one),
  mismatch(() => {}),
  program.compare(other, one)?.what,
  mismatch((r) => { r.program = other.root; })?.what,
  mismatch((r) => { r.metadata = other.root; })?.what,
  mismatch((r) => { r.cost_weights = 2; }),
  mismatch((r) => { r.samples.push(r.samples[0]); }),
  mismatch((r) => { r.samples[0].outputs.y = "0"; })?.what,
  mismatch((r) => { delete r.samples[0].outputs.y; })?.expected,
  mismatch((r) => { r.samples[0].inputs.z = "1"; })?.what,
  mismatch((r) => { r.samples[0].cost += 1; })?.what,
  mismatch((r) => { r.samples[0].trace = "0"; })?.what,
  mismatch((r) => { r.root = other.root; })?.what,
]));
"""


def test_a_receipt_that_was_changed_is_told_from_ours(described):
    _, written = described
    (written.folder / "compares.js").write_text(COMPARES)
    weights = {"what": "the version of the cost weights"}
    number = {"what": "the number of samples", "expected": 2, "found": 1}
    assert json.loads(node(written.folder, "compares.js")) == [
        None,
        None,
        "sample 0, input 'x'",
        "the program",
        "the metadata",
        {**weights, "expected": 2, "found": 1},
        number,
        "sample 0, output 'y'",
        "nothing",
        "sample 0, input 'z'",
        "sample 0, cost",
        "the root",  # which binds the trace
        "the root",
    ]


REFUSES = """\
import { load } from "./index.js";
const program = await load();
const why = (task) => { try { task(); return null; } catch (problem) { return problem.message; } };
console.log(JSON.stringify([
  [1, 2, 3],
  new Int8Array(10),
  { shape: [3, 3], values: new Int8Array(9) },
  new Int8Array(9).fill(101),
  new Float64Array(9).fill(0.5),
  [[[[1], [2]], [[3]]]],
  { z: [1] },
  "x",
].map((array) => why(() => program.run(array))).concat(
  why(() => program.run(new Float64Array(9).fill(NaN), { real: true })),
  why(() => program.compare("{}", {})),
  why(() => program.compare("nothing", {})),
)));
"""


def test_what_does_not_suit_is_refused_in_words(described):
    _, written = described
    (written.folder / "refuses.js").write_text(REFUSES)
    expected = "expected [1,1,9,1] or, for N samples, [N,1,9,1]"
    found = json.loads(node(written.folder, "refuses.js"))
    assert found[:8] == [
        f"input 'x': shape [3]; {expected}",
        f"input 'x': 10 numbers; {expected}",
        f"input 'x': shape [3,3]; {expected}",
        "input 'x', sample 0, element 0: value 101 is outside -100..100",
        "input 'x', sample 0, element 0: value 0.5 is no integer; { real: true } takes real numbers",
        "an array is ragged: its rows differ in length",
        "no array for input 'x'",
        "no array for input 'x'",
    ]
    assert found[8] == "input 'x', sample 0, element 0: value is NaN"
    assert found[9].startswith("no receipt: its format is none of")
    assert found[10].startswith("no receipt: ")


def test_the_self_test_passes_and_finds_one_changed_bit(described):
    _, written = described
    assert "match" in node(written.folder, "test.js")
    script = written.folder / "program.js"
    text = script.read_text()
    root = text.partition('"test_root": "')[2][:64]
    other = root[:-1] + ("0" if root[-1] != "0" else "1")
    script.write_text(text.replace(root, other))
    with pytest.raises(AssertionError, match="mismatch"):
        node(written.folder, "test.js")
