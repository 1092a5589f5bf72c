"""`cvm run --backend concrete`: by a stand-in for Concrete everywhere, and encrypted where it is; `cvm replay` is the judge."""

from __future__ import annotations

import json
import sys
from dataclasses import replace

import numpy as np
import pytest

from cvm.errors import BadInput
from cvm.export.concrete import machine
from cvm.export.concrete.environment import FOLDER, VARIABLE, ran
from cvm.export.concrete.machine import Concrete, open_machine
from cvm.file import format as file_format
from cvm.program import Input, Instruction, Output, Program, TensorType
from cvm.proof.validate import validate
from cvm.reference import interpreter
from cvm.runtime.backends import BackendOptions, open_backend
from tests.cvm.export.test_concrete import perceptron
from tests.support.command import cvm, said
from tests.support.concrete_programs import concrete_python

BACKEND = ("--backend", "concrete")
X = np.array([[-2, 5, 0, 3, -1, 4]], np.int8)
STAND_IN = """\
#!{python}
# Runs a folder's program with ciphertexts that hide nothing: arrays, of which bit {bit} of the first number is turned over.
import json, os, runpy, sys
from pathlib import Path
import numpy as np
folder = Path(sys.argv[1]).parent
sys.argv = sys.argv[1:]
main = runpy.run_path(sys.argv[0])
words = [word for word in sys.argv[1:] if not word.startswith("--")]
(folder / "seen.txt").open("a").write(" ".join(sys.argv[1:3]) + "\\n")
client, server = folder / "client", folder / "server"
def inputs():
    return main["read_arrays"](sys.argv[sys.argv.index("--input") + 1])
if words[0] == "compile":
    client.mkdir(), server.mkdir()
elif words[:2] == ["client", "keygen"]:
    (client / "secret.keys").write_text("secret")
elif words[:2] == ["client", "encrypt"]:
    vector, _ = main["before"](main["Plan"]("client"), inputs())
    vector[0] ^= {bit}
    np.save((server / "input.bin").open("wb"), vector)
elif words[:2] == ["server", "run"]:
    found = main["compute"](main["Plan"]("server"), np.load(server / "input.bin"), main["Clear"]())
    np.save((client / "result.bin").open("wb"), found)
    print("what a library says\\n" + json.dumps({{"seconds": 0.25}}))
elif words[:2] == ["client", "decrypt"]:
    plan = main["Plan"]("client")
    _, values = main["before"](plan, inputs())
    outputs = main["after"](plan, np.load(client / "result.bin"), values)
    main["write_arrays"](sys.argv[sys.argv.index("--output") + 1], outputs)
elif words[0] == "simulate":
    sys.argv.append("--clear")
    main["main"]()
"""


@pytest.fixture(name="paths")
def _paths(tmp_path):
    file_format.write(perceptron(), tmp_path / "p.cvm")
    np.save(tmp_path / "x.npy", X)
    return tmp_path


def stand_in(folder, monkeypatch, bit=0):
    path = folder / "python"
    path.write_text(STAND_IN.format(python=sys.executable, bit=bit))
    path.chmod(0o755)
    monkeypatch.setenv(VARIABLE, str(path))


def command(paths, name, *words):
    return cvm(name, paths / "p.cvm", *words, "--input", paths / "x.npy")


def test_a_receipt_states_scheme_and_probability_and_replays(
    paths, monkeypatch
):
    stand_in(paths, monkeypatch)
    receipt = paths / "r.json"
    found = command(paths, "run", *BACKEND, "--receipt", receipt, "--json")
    assert found.exit_code == 0
    expected = command(paths, "run", "--json")
    assert (
        json.loads(found.stdout)["outputs"]
        == json.loads(expected.stdout)["outputs"]
    )
    assert json.loads(receipt.read_text())["backend"] == {
        "name": "concrete",
        "version": "2.11.0",
        "protocol": "tfhe",
        "error_probability": "2^-40",
    }
    assert command(paths, "replay", receipt).stdout.startswith("match")


def test_a_bit_flipped_in_what_is_encrypted_is_caught(paths, monkeypatch):
    stand_in(paths, monkeypatch, bit=4)
    receipt = paths / "r.json"
    assert command(paths, "run", *BACKEND, "--receipt", receipt).exit_code == 0
    found = command(paths, "replay", receipt)
    assert found.exit_code == 1
    assert found.stdout.startswith("no match: sample 0, output 'y'")


def test_client_and_server_are_processes_with_files_between_them(
    paths, monkeypatch
):
    stand_in(paths, monkeypatch)
    opened = open_backend("concrete", BackendOptions(), validate(perceptron()))
    assert isinstance(opened, Concrete)
    for _ in range(2):
        opened.run({"x": X})
    folder = opened._folder
    assert folder is not None
    rounds = ["client encrypt", "server run", "client decrypt"]
    seen = (folder / "seen.txt").read_text().splitlines()
    assert seen == ["compile --p-error", "client keygen", *rounds, *rounds]
    assert opened.effort.seconds == (0.25, 0.25)
    assert opened.effort.sent_bytes[0] > 0
    assert not (folder / "server" / "secret.keys").exists()
    del opened
    assert not folder.exists()  # with its keys


@pytest.mark.parametrize("simulate", [True, False])
def test_arrays_may_have_any_names(paths, monkeypatch, simulate):
    """Numpy's own savez takes none of the first two, and its load mixes up the others."""
    stand_in(paths, monkeypatch)
    plain = perceptron()
    program = replace(
        plain,
        inputs=tuple(replace(item, name="file") for item in plain.inputs),
        outputs=tuple(
            Output(name, value)
            for name, value in (
                ("file", 13),
                ("x", 13),
                ("x.npy", 12),
                ("a/../y", 13),
            )
        ),
    )
    form = validate(program)
    options = BackendOptions(simulate=simulate)
    found = open_backend("concrete", options, form).run({"file": X})
    expected = interpreter.run(form, {"file": X})
    assert found.keys() == expected.keys()
    for name, array in expected.items():
        assert np.array_equal(found[name], array)


def test_a_simulation_says_so(paths, monkeypatch):
    stand_in(paths, monkeypatch)
    found = command(paths, "run", *BACKEND, "--simulate", "--json")
    facts = json.loads(found.stdout)
    assert facts["backend"]["protocol"] == "tfhe, simulated"
    expected = json.loads(command(paths, "run", "--json").stdout)
    assert facts["outputs"] == expected["outputs"]


@pytest.mark.parametrize(
    "words, sentence",
    [
        (("--backend", "spu", "--simulate"), "is of the back end concrete"),
        (("--simulate",), "add --backend concrete"),
        ((*BACKEND, "--protocol", "aby3"), "has one scheme"),
        ((*BACKEND, "--secret-weights"), "has the weights"),
        ((*BACKEND, "--trace", "t.json"), "a trace shows every value"),
    ],
)
def test_options_of_another_back_end_are_refused(
    paths, monkeypatch, words, sentence
):
    stand_in(paths, monkeypatch)
    monkeypatch.chdir(paths)
    assert sentence in said(command(paths, "run", *words), 2)


def test_a_missing_environment_is_named(paths, monkeypatch):
    monkeypatch.setenv(VARIABLE, str(paths / "none"))
    sentence = said(command(paths, "run", *BACKEND), 2)
    assert "Concrete is not installed" in sentence
    assert "make test-fhe" in sentence and FOLDER in sentence


def test_a_program_too_wide_is_refused_before_concrete_is_looked_for(
    tmp_path, monkeypatch
):
    monkeypatch.setenv(VARIABLE, str(tmp_path / "none"))
    i32 = TensorType("i32", (2,))
    program = Program(
        (Input("x", i32, -9, 9), Input("z", i32, -9, 9)),
        (),
        (Instruction("mul", (0, 1), {"shift": 0}),),
        (Output("y", 2),),
    )
    with pytest.raises(BadInput, match="it multiplies two secrets"):
        open_machine(validate(program), BackendOptions())


def test_the_last_words_of_a_failed_command_are_passed_on(paths, monkeypatch):
    (paths / "python").write_text(
        "#!/bin/sh\necho first >&2\necho why >&2\nexit 3\n"
    )
    (paths / "python").chmod(0o755)
    monkeypatch.setenv(VARIABLE, str(paths / "python"))
    with pytest.raises(BadInput, match="concrete: why"):
        ran(paths, "compile")


@pytest.mark.slow
def test_encrypted_and_replayed(paths, monkeypatch):
    """By Concrete itself; then with one bit of the first number turned over before it is encrypted."""
    monkeypatch.setenv(VARIABLE, concrete_python())
    receipt = paths / "r.json"
    assert command(paths, "run", *BACKEND, "--receipt", receipt).exit_code == 0
    assert command(paths, "replay", receipt).stdout.startswith("match")

    def flipped(folder, *words):
        if words[:2] == ("client", "encrypt"):
            x = X.copy()
            x[0, 0] = 2  # 0 from the least, and now 4
            np.savez(folder / "flipped.npz", x=x)
            words = (*words[:2], "--input", str(folder / "flipped.npz"))
        return ran(folder, *words)

    monkeypatch.setattr(machine, "ran", flipped)
    assert command(paths, "run", *BACKEND, "--receipt", receipt).exit_code == 0
    found = command(paths, "replay", receipt)
    assert found.stdout.startswith("no match: sample 0, output 'y'")
