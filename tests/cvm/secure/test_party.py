"""`cvm party`: seats that are refused, and three processes on one machine, each with its own shares."""

from __future__ import annotations

import socket
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from cvm.file import format as file_format
from cvm.proof.validate import validate
from cvm.reference import interpreter
from tests.cvm.secure.test_functions_on_shares import layers
from tests.support.command import cvm, said
from tests.support.run_programs import doubler
from tests.support.spu import needs_spu, stand_in

ROOT = Path(__file__).resolve().parents[3]
PEERS = "a:1,b:2,c:3"
SEMI2K = ("--protocol", "semi2k")
SAMPLES = np.array([[100, -128, 127], [1, 2, 3]], np.int8)


@pytest.fixture(name="folder")
def _folder(tmp_path):
    file_format.write(layers(), tmp_path / "p.cvm")
    np.save(tmp_path / "x.npy", SAMPLES)
    return tmp_path


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (
            ("--rank", 0, "--peers", "a:1,b:2"),
            "2 peers; aby3 has 3 parties",
        ),
        (
            ("--rank", 0, "--peers", "a:1,b:2,c"),
            "peer 'c': expected host:port",
        ),
        (
            ("--rank", 0, "--peers", "a:1", "--protocol", "bgw"),
            "protocol 'bgw': expected one of aby3, semi2k, cheetah",
        ),
        (
            ("--rank", 3, "--peers", PEERS, "--client", 3),
            "--rank 3: aby3 has the parties 0..2",
        ),
        (
            ("--rank", 1, "--peers", PEERS, "--client", 1, *SEMI2K),
            "semi2k hides nothing from party 0, its dealer: inputs and secret weights must be that party's own, or choose aby3",
        ),
    ],
)
def test_a_seat_that_does_not_suit_is_refused(folder, words, sentence):
    paths = (folder / "p.cvm", "--input", folder / "x.npy")
    assert said(cvm("party", *paths, *words), 2) == sentence


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (
            ("--rank", 0),
            "party 0 needs --input: party 0 is the client (--client)",
        ),
        (
            ("--rank", 1, "--input", "x.npy"),
            "party 1 has no --input: party 0 is the client (--client)",
        ),
        (("--rank", 1, "-o", "y.npz"), "-o is the client's"),
        (("--rank", 1, "--real"), "--real is the client's"),
    ],
)
def test_who_gives_inputs_is_the_client(folder, words, sentence):
    found = cvm("party", folder / "p.cvm", "--peers", PEERS, *words)
    assert said(found, 2) == sentence


def test_a_helper_prints_what_it_served(folder, monkeypatch):
    body = (
        "assert job['seat'] == dict(rank=2, peers=['a:1', 'b:2', 'c:3'], client=0, weights_from=1, timeout=9)\n"
        "assert job['terms']['secret_weights'] and job['hide_weights']\n"
        "answer(compile_seconds=1)\n"
        "answer(samples=2, efforts=[dict(seconds=1, sent_bytes=600, sends=3)] * 2)"
    )
    python = stand_in(folder, body)
    monkeypatch.setenv("CVM_SPU_PYTHON", str(python))
    words = ("--rank", 2, "--peers", PEERS, "--timeout", 9)
    secret = ("--secret-weights", "--weights-from", 1)
    found = cvm("party", folder / "p.cvm", *words, *secret)
    assert found.stdout == "served 2 samples; 1,200 bytes sent\n"


def test_a_stripped_program_has_no_weights_and_no_metadata(folder):
    shown = folder / "shown.cvm"
    assert cvm("strip", folder / "p.cvm", "-o", shown).exit_code == 0
    found = file_format.read(shown)
    w, b, *others = found.constants
    assert w.tolist() == [[0, 0, 0], [0, 0, 0]]
    assert b.tolist() == [0, 0]
    for array, own in zip(others, layers().constants[2:], strict=True):
        assert np.array_equal(array, own)
    file_format.write(doubler(), folder / "d.cvm")
    refused = said(cvm("strip", folder / "d.cvm", "-o", shown), 2)
    assert refused.endswith("so no weights to hide")


def free_ports(count):
    sockets = [socket.socket() for _ in range(count)]
    for one in sockets:
        one.bind(("127.0.0.1", 0))
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


def parties(programs, *words, client=0, client_words=()):
    """Run a party for each program; return exit codes and what they print."""
    peers = ",".join(f"127.0.0.1:{p}" for p in free_ports(len(programs)))
    started = []
    for rank, program in enumerate(programs):
        command = (
            *(sys.executable, "-m", "cvm", "party", program),
            *("--rank", rank, "--peers", peers, "--timeout", 300, *words),
            *("--client", client),
            *(client_words if rank == client else ()),
        )
        started.append(
            subprocess.Popen(
                [str(word) for word in command],
                cwd=ROOT,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
            )
        )
    texts = [one.communicate(timeout=600)[0] for one in started]
    return [(one.returncode, text) for one, text in zip(started, texts, strict=True)]  # fmt: skip


@needs_spu
def test_three_processes_give_the_integers_of_the_reference(folder):
    """Party 0 is the client, party 1 alone has the weights."""
    program, shown = folder / "p.cvm", folder / "shown.cvm"
    assert cvm("strip", program, "-o", shown).exit_code == 0
    made, out = folder / "r.json", folder / "y.npz"
    x = ("--input", folder / "x.npy")
    given = (*x, "-o", out, "--receipt", made)
    words = ("--secret-weights", "--weights-from", 1)
    found = parties((shown, program, shown), *words, client_words=given)
    assert [code for code, _ in found] == [0, 0, 0], found
    assert found[1][1].startswith("served 2 samples; ")
    with np.load(out) as arrays:
        outputs = arrays["y"]
    form = validate(layers())
    for sample, output in zip(SAMPLES, outputs, strict=True):
        expected = interpreter.run(form, {"x": sample[None]})
        assert np.array_equal(output[None], expected["y"])
    # the receipt names the program that has the weights, which its owner can replay
    assert cvm("replay", program, made, *x).exit_code == 0
    assert cvm("replay", shown, made, *x).exit_code == 1


@needs_spu
def test_parties_with_other_programs_are_refused(folder):
    other = folder / "other.cvm"
    w, *others = layers().constants
    file_format.write(replace(layers(), constants=(-w, *others)), other)
    given = ("--input", folder / "x.npy")
    program = folder / "p.cvm"
    found = parties((program, program, other), client_words=given)
    assert [code for code, _ in found] == [2, 2, 2]
    assert "party 2 runs something else: program is '" in found[0][1]
