"""Whole networks: how many constraints they have, and proofs of those that a setup here can hold.

The setup is one that nobody is to trust; `build/privacy` keeps it for the next time.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import cvm as machine
from benchmarks.private_models import MODELS
from cvm.export.targets import export
from tests.support.command import cvm
from tests.support.powers_of_tau import write_powers

ROOT = Path(__file__).resolve().parents[3]
POWERS = ROOT / "build" / "privacy" / "powers12.ptau"
MOST_ROWS = {"lr": 1_500, "mlp": 2_700, "tree": 2_800}
needs_snarkjs = pytest.mark.skipif(
    shutil.which("snarkjs") is None,
    reason="snarkjs is not on the path: `make test-proof` installs it",
)
pytestmark = pytest.mark.slow


def snarkjs(folder: Path, words: str) -> None:
    subprocess.run(["snarkjs", *words.split()], cwd=folder, check=True)


def converted(name: str, folder: Path) -> Path:
    (model,) = (model for model in MODELS if model.name == name)
    program = folder / f"{name}.cvm"
    command = (sys.executable, "-m", "mrt", "convert", "-q")
    words = (*model.conversion(folder), "-o", str(program))
    subprocess.run([*command, *words], check=True, cwd=ROOT)
    return program


@pytest.fixture(name="powers", scope="module")
def _powers(tmp_path_factory):
    if not POWERS.is_file():
        made = tmp_path_factory.mktemp("powers") / "12.ptau"
        write_powers(made, 12)
        POWERS.parent.mkdir(parents=True, exist_ok=True)
        shutil.move(made, POWERS)
    return POWERS


@needs_snarkjs
def test_the_setup_is_what_snarkjs_makes_of_its_powers(tmp_path):
    write_powers(tmp_path / "a.ptau", 4)
    snarkjs(tmp_path, "powersoftau prepare phase2 a.ptau b.ptau")
    found, expected = (tmp_path / f"{x}.ptau" for x in "ab")
    assert found.read_bytes() == expected.read_bytes()


@needs_snarkjs
@pytest.mark.parametrize("name", MOST_ROWS)
def test_a_network_is_proven_from_pixels_to_classes(name, powers, tmp_path):
    program = converted(name, tmp_path)
    form = machine.load(program, engine="reference")
    made = export(form, "r1cs", name)
    assert made.facts["constraints"] < MOST_ROWS[name]
    (tmp_path / "p.r1cs").write_bytes(made.binaries[f"{name}.r1cs"])
    for words in (
        f"groth16 setup p.r1cs {powers} a.zkey",
        "zkey contribute a.zkey p.zkey -e=two",
        f"zkey verify p.r1cs {powers} p.zkey",
        "zkey export verificationkey p.zkey key.json",
    ):
        snarkjs(tmp_path, words)
    with np.load(tmp_path / "digits.npz") as stored:
        np.savez(tmp_path / "x.npz", data=stored["data"][:1])
    given = ("--input", tmp_path / "x.npz", "--real")
    proof, key = tmp_path / "proof", ("--key", tmp_path / "key.json")
    zkey = ("--key", tmp_path / "p.zkey", "-o", proof)
    assert cvm("prove", program, *given, *zkey).exit_code == 0
    found = cvm("verify-proof", program, proof, *key, "--json")
    shown = json.loads(found.stdout)["outputs"]["y"]
    np.savez(tmp_path / "q.npz", **form.quantize(dict(np.load(tmp_path / "x.npz"))))  # fmt: skip
    expected = cvm("run", program, "--input", tmp_path / "q.npz", "--json")
    assert shown == json.loads(expected.stdout)["outputs"]["y"]["values"]
    public = json.loads((proof / "public.json").read_text())
    public[9] = str(int(public[9]) ^ 1)
    (proof / "public.json").write_text(json.dumps(public))
    assert cvm("verify-proof", program, proof, *key).exit_code == 1


def test_a_residual_network_has_fewer_than_400_000_constraints(tmp_path):
    form = machine.load(converted("resnet_digits8", tmp_path))
    assert export(form, "r1cs", "p").facts["constraints"] < 400_000


@needs_snarkjs
def test_a_convolutional_network_fulfils_its_constraints(tmp_path):
    """Its setup would take hours; that its rows hold, snarkjs says of the files alone."""
    form = machine.load(converted("lenet_digits28", tmp_path))
    made = export(form, "r1cs", "p")
    for name in ("p.r1cs", "sample.wtns"):
        (tmp_path / name).write_bytes(made.binaries[name])
    snarkjs(tmp_path, "wtns check p.r1cs sample.wtns")
    wrong = bytearray(made.binaries["sample.wtns"])
    wrong[-40] ^= 1
    (tmp_path / "sample.wtns").write_bytes(wrong)
    with pytest.raises(subprocess.CalledProcessError):
        snarkjs(tmp_path, "wtns check p.r1cs sample.wtns")
