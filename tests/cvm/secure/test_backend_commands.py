"""`cvm run --backend spu`, with a stand-in for SPU: what is refused, printed and recorded, wherever the tests run."""

from __future__ import annotations

import json

import numpy as np
import pytest

from cvm.errors import BadInput
from cvm.file import format as file_format
from cvm.program import Input, Instruction, Output, Program, TensorType
from cvm.proof.validate import validate
from cvm.runtime import receipt
from cvm.secure.refusals import MOST_COMPARISONS, require_runnable
from cvm.secure.weights import bounds_of, hidden_weights
from tests.support.command import cvm, said
from tests.support.run_programs import chain, doubler
from tests.support.spu import HONEST, stand_in

SAMPLES = np.array([[1, 2, 3], [-4, 0, 1000]], np.int32)
BACKEND = ("--backend", "spu")


@pytest.fixture(name="paths")
def _paths(tmp_path):
    file_format.write(doubler(), tmp_path / "p.cvm")
    np.save(tmp_path / "x.npy", SAMPLES)
    return tmp_path / "p.cvm", "--input", tmp_path / "x.npy"


@pytest.fixture(name="honest")
def _honest(tmp_path, monkeypatch):
    python = stand_in(tmp_path, HONEST)
    monkeypatch.setenv("CVM_SPU_PYTHON", str(python))


def test_a_run_prints_and_records_what_the_back_end_gave(
    paths, honest, tmp_path
):
    made = tmp_path / "r.json"
    result = cvm("run", *paths, *BACKEND, "--receipt", made)
    assert result.exit_code == 0
    # the stand-in sends 1000 and 1001 bytes
    assert (
        "spu 0.9.5, aby3: 0.25 s a sample, compiled in 0.5 s; one party sends 1,000 bytes in 7 messages"
        in result.stdout
    )
    stated = json.loads(made.read_text())
    assert stated["backend"] == {
        "name": "spu",
        "version": "0.9.5",
        "protocol": "aby3",
        "error_probability": "0",
    }
    assert cvm("replay", paths[0], made, *paths[1:]).stdout.startswith("match")
    plain = tmp_path / "plain.json"
    assert cvm("run", *paths, "--receipt", plain).exit_code == 0
    assert json.loads(plain.read_text())["root"] == stated["root"]


def test_json_has_the_back_end_and_its_effort(paths, honest):
    words = (*BACKEND, "--protocol", "cheetah", "--json")
    found = json.loads(cvm("run", *paths, *words).stdout)
    assert found["outputs"]["y"]["values"] == [[2, 4, 6], [-8, 0, 2000]]
    assert found["backend"] == {
        "name": "spu",
        "version": "0.9.5",
        "protocol": "cheetah",
        "error_probability": "0",
        "compile_seconds": 0.5,
        "seconds": [0.25, 0.25],
        "sent_bytes": [1000, 1001],
        "sends": [7, 7],
    }


def test_a_bit_flipped_in_an_output_is_found_by_replay(
    paths, tmp_path, monkeypatch
):
    lying = HONEST.replace(
        "outputs(int(line))", "[one ^ 1 for one in outputs(int(line))]"
    )
    monkeypatch.setenv("CVM_SPU_PYTHON", str(stand_in(tmp_path, lying)))
    made = tmp_path / "r.json"
    assert cvm("run", *paths, *BACKEND, "--receipt", made).exit_code == 0
    judged = cvm("replay", paths[0], made, *paths[1:])
    assert judged.exit_code == 1
    assert judged.stdout.startswith("no match: sample 0, output 'y'")


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        ("answer(error='no memory')", "spu: no memory"),
        (
            "sys.stderr.write('first\\nlast words\\n'); sys.exit(5)",
            "spu: its process ended with code 5: last words",
        ),
        ("sys.stdout.write('nonsense\\n')", "spu: its process answered with something else"),
        ("sys.exit(0)", "spu: its process ended with code 0: no reason given"),
        (
            HONEST.replace("outputs(int(line))", "[np.zeros((1, 3), 'i2')]").replace("answer(", "import numpy as np; answer(", 1),
            "spu: output 'y' is int16; expected i32[1,3]",
        ),
    ],
)  # fmt: skip
def test_an_engine_that_fails_is_one_sentence(
    paths, tmp_path, monkeypatch, body, sentence
):
    monkeypatch.setenv("CVM_SPU_PYTHON", str(stand_in(tmp_path, body)))
    assert said(cvm("run", *paths, *BACKEND), 2) == sentence


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (
            ("--protocol", "aby3"),
            "--protocol is of a back end: add --backend spu",
        ),
        (
            ("--secret-weights",),
            "--secret-weights is of a back end: add --backend spu",
        ),
        (
            (*BACKEND, "--protocol", "bgw"),
            "protocol 'bgw': expected one of aby3, semi2k, cheetah",
        ),
        (
            ("--backend", "ups"),
            "back end 'ups': expected one of concrete, spu; others are found as entry points of the group cvm.backends",
        ),
        (
            (*BACKEND, "--trace", "t.json"),
            "a trace shows every value, which the back end spu hides; leave --trace away",
        ),
        (
            (*BACKEND, "--engine", "reference"),
            "the engine reference or the back end spu: choose one",
        ),
        (
            (*BACKEND, "--checked"),
            "the back end spu runs proven programs only: leave --checked away",
        ),
        (
            (*BACKEND, "--secret-weights"),
            "the program has no convolution and no dense layer, so no weights to hide",
        ),
    ],
)
def test_what_cannot_be_chosen_is_refused(paths, honest, words, sentence):
    assert said(cvm("run", *paths, *words), 2) == sentence


def test_without_spu_the_way_to_get_it_is_named(paths, tmp_path, monkeypatch):
    monkeypatch.setenv("CVM_SPU_PYTHON", str(tmp_path / "none"))
    sentence = said(cvm("run", *paths, *BACKEND), 2)
    assert sentence.startswith(
        f"SPU is not installed: CVM_SPU_PYTHON names {tmp_path / 'none'}; `make privacy`"
    )


def test_all_refused_instructions_are_named_at_once():
    """A table of 2^16 - 1 steps for each of 100 elements is too many comparisons; both sorts are refused."""
    values = np.arange(-32768, 32768, dtype=np.int16)
    steps = (
        Instruction("table", (0, 1)),
        Instruction("argsort", (2,), {"descending": True}),
        Instruction("argsort", (0,), {"descending": False}),
    )
    x = Input("x", TensorType("i16", (1, 100)), -32768, 32767)
    outputs = (Output("y", 3), Output("z", 4))
    form = validate(Program((x,), (values,), steps, outputs))
    with pytest.raises(BadInput) as problem:
        require_runnable(form, bounds_of(form, ()))
    assert MOST_COMPARISONS == 4194304
    assert str(problem.value) == (
        "the back end spu cannot run table (%2): 6,553,500 comparisons, at most 4,194,304; convert with fewer bits "
        "before it; argsort (%3 %4): SPU's sorting exchanges equal numbers under cheetah, and what it opens to the parties "
        "is not known"
    )


def test_a_narrow_interval_makes_few_comparisons():
    """The same table of an input in 0..9: nine steps each."""
    values = np.arange(-32768, 32768, dtype=np.int16)
    x = Input("x", TensorType("i16", (1, 100)), 0, 9)
    steps = (Instruction("table", (0, 1)),)
    form = validate(Program((x,), (values,), steps, (Output("y", 2),)))
    require_runnable(form, bounds_of(form, ()))


def test_a_refused_program_is_refused_before_spu_is_looked_for(
    tmp_path, monkeypatch
):
    monkeypatch.setenv("CVM_SPU_PYTHON", str(tmp_path / "none"))
    x = Input("x", TensorType("i32", (1, 3)), -5, 5)
    steps = (Instruction("argsort", (0,), {"descending": False}),)
    file_format.write(
        Program((x,), (), steps, (Output("y", 1),)), tmp_path / "p.cvm"
    )
    np.save(tmp_path / "x.npy", np.zeros((1, 3), np.int32))
    words = ("--input", tmp_path / "x.npy", *BACKEND)
    sentence = said(cvm("run", tmp_path / "p.cvm", *words), 2)
    assert sentence.startswith("the back end spu cannot run argsort (%1)")


def test_a_weight_with_another_use_cannot_be_hidden():
    w, b = np.eye(3, dtype=np.int8), np.zeros(3, np.int32)
    steps = (
        Instruction("dense", (0, 1, 2), {"input_zp": 0}),
        Instruction("add", (3, 2)),
    )
    x = Input("x", TensorType("i8", (1, 3)), -5, 5)
    program = Program((x,), (w, b), steps, (Output("y", 4),))
    with pytest.raises(BadInput, match="constant %2 is a weight of %3 = dense"):
        hidden_weights(program)


def test_a_receipt_keeps_its_back_end_when_it_is_read(tmp_path):
    statement = receipt.BackendStatement("spu", "0.9.5", "aby3", "2^-40")
    made = receipt.Receipt.of("11" * 32, None, [], statement)
    text = receipt.to_json(made)
    assert receipt.from_json(text.encode(), "r") == made
    assert made.root == receipt.Receipt.of("11" * 32, None, []).root
    wrong = text.replace('"protocol": "aby3"', '"protocol": 3')
    with pytest.raises(BadInput, match=r"backend.protocol must be a text"):
        receipt.from_json(wrong.encode(), "r")
    less = text.replace('  "protocol": "aby3",\n', "")
    with pytest.raises(BadInput, match="backend lacks 'protocol'"):
        receipt.from_json(less.encode(), "r")


def test_a_receipt_of_version_1_has_no_back_end():
    statement = receipt.BackendStatement("spu", "0.9.5", "aby3", "0")
    old = receipt.Receipt(
        "11" * 32, None, 1, (), bytes(32), version=1, backend=statement
    )
    with pytest.raises(BadInput, match="has the unknown key 'backend'"):
        receipt.from_json(receipt.to_json(old).encode(), "r")


def test_the_chain_of_a_program_is_unchanged_by_options_that_are_not_given(
    paths,
):
    """Neither option reaches a run on the engines."""
    file_format.write(chain(), paths[0])
    found = json.loads(cvm("run", *paths, "--json").stdout)
    assert found["backend"] is None
