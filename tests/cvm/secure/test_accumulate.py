"""`cvm accumulate` among parties: outputs go on as shares, and are opened once."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from cvm.errors import BadInput
from cvm.file import format as file_format
from cvm.proof.validate import validate
from cvm.runtime.accumulation import Carried, accumulate
from cvm.runtime.backends import BackendOptions, open_backend
from cvm.runtime.machine import choose
from tests.cvm.runtime.test_accumulation import greatest
from tests.cvm.secure.test_party import PEERS, ROOT, free_ports
from tests.support.command import cvm, said
from tests.support.spu import needs_spu, stand_in

ROWS = np.array([[3, -9], [-7, -8], [2, -11]], np.int32)
SAMPLES = [{"x": row[None]} for row in ROWS]
KEEPING = """\
assert job["carried"] == [[1, 0]] and job["terms"]["carried"] == [[1, 0]]
answer(compile_seconds=0.5, program=job["program"])
kept = None
for line in sys.stdin:
    if line == "open\\n":
        exchange.write_arrays(folder / "open.out.npz", kept)
        answer(opened=True)
        continue
    arrays = exchange.read_arrays(folder / f"{int(line)}.in.npz")
    names = [item.name for item in program.program.inputs]
    given = dict(zip(names, arrays))
    if kept:
        given["most"] = kept[0]
    kept = [*program.run(given).values()]
    answer(seconds=0.25, sent_bytes=1000, sends=7)
"""


@pytest.fixture(name="folder")
def _folder(tmp_path):
    file_format.write(greatest(), tmp_path / "p.cvm")
    np.save(tmp_path / "x.npy", ROWS)
    return tmp_path


def test_the_process_is_told_what_goes_on_and_opens_it_when_asked(
    folder, monkeypatch
):
    monkeypatch.setenv("CVM_SPU_PYTHON", str(stand_in(folder, KEEPING)))
    out = folder / "out.npz"
    words = ("--input", folder / "x.npy", "--backend", "spu", "-o", out)
    done = cvm("accumulate", folder / "p.cvm", *words)
    assert done.stdout == f"wrote {out}: most of 3 samples\n"
    assert np.load(out)["most"].tolist() == [[3, -8]]


def test_a_client_needs_a_place_for_what_is_gathered(folder):
    words = (
        "--rank",
        0,
        "--peers",
        PEERS,
        "--accumulate",
        "--input",
        folder / "x.npy",
    )
    assert said(cvm("party", folder / "p.cvm", *words), 2) == (
        "--accumulate needs -o, and writes no receipt and no JSON"
    )


def test_a_machine_that_was_started_does_not_accumulate(monkeypatch, tmp_path):
    """Its process was told of nothing to carry, or still has the shares of before."""
    body = 'answer(compile_seconds=0.5, program=job["program"])\nsys.stdin.read()\n'
    monkeypatch.setenv("CVM_SPU_PYTHON", str(stand_in(tmp_path, body)))
    form = validate(greatest())
    machine = open_backend("spu", BackendOptions("aby3"), form)
    machine.prepare(traced=False)
    with pytest.raises(BadInput, match="open another one to accumulate"):
        accumulate(Carried.of(form), machine, SAMPLES)


@needs_spu
@pytest.mark.parametrize("protocol", ["aby3", "semi2k", "cheetah"])
def test_each_protocol_gathers_what_the_reference_gathers(protocol):
    form = validate(greatest())
    machine = open_backend("spu", BackendOptions(protocol), form)
    found = accumulate(Carried.of(form), machine, SAMPLES)
    wanted = accumulate(Carried.of(form), choose(form, "reference"), SAMPLES)
    assert found["most"].tolist() == wanted["most"].tolist() == [[3, -8]]


@needs_spu
@pytest.mark.slow
def test_three_processes_gather_and_only_the_client_learns(folder):
    peers = ",".join(f"127.0.0.1:{port}" for port in free_ports(3))
    common = ["--peers", peers, "--accumulate", "--timeout", "60"]
    out = folder / "out.npz"

    def party(rank, *words):
        command = [
            sys.executable,
            "-m",
            "cvm",
            "party",
            folder / "p.cvm",
            "--rank",
            rank,
        ]
        return subprocess.Popen(
            [*map(str, command), *common, *map(str, words)],
            stdout=subprocess.PIPE,
            text=True,
            cwd=ROOT,
        )

    helpers = [party(rank) for rank in (1, 2)]
    client = party(0, "--input", folder / "x.npy", "-o", out)
    assert (
        client.communicate(timeout=300)[0]
        == f"wrote {out}: most of 3 samples\n"
    )
    for helper in helpers:
        assert helper.communicate(timeout=60)[0].startswith(
            "served 3 samples; "
        )
    assert np.load(out)["most"].tolist() == [[3, -8]]
