"""Whole networks: how many constraints they have, and proofs of those that a setup here can hold.

The setup is one that nobody is to trust; `build/privacy` keeps it for the next time.
"""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

import cvm as machine
from benchmarks.powers_of_tau import write_powers
from benchmarks.private_models import MODELS
from benchmarks.proofs import reading
from cvm.export.targets import export

ROOT = Path(__file__).resolve().parents[3]
KEPT = ROOT / "build" / "privacy"
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
    return model.converted(folder)


@needs_snarkjs
def test_the_setup_is_what_snarkjs_makes_of_its_powers(tmp_path):
    write_powers(tmp_path / "a.ptau", 4)
    snarkjs(tmp_path, "powersoftau prepare phase2 a.ptau b.ptau")
    found, expected = (tmp_path / f"{x}.ptau" for x in "ab")
    assert found.read_bytes() == expected.read_bytes()


@needs_snarkjs
def test_powers_for_one_size_alone_make_the_same_keys(tmp_path):
    form = machine.load(converted("lr", tmp_path))
    made = export(form, "r1cs", "p")
    (tmp_path / "p.r1cs").write_bytes(made.binaries["p.r1cs"])
    bits = (made.facts["constraints"] + made.facts["public"]).bit_length()
    keys = []
    for alone in (False, True):
        write_powers(tmp_path / "p.ptau", bits, alone=alone)
        snarkjs(tmp_path, "groth16 setup p.r1cs p.ptau p.zkey")
        keys.append((tmp_path / "p.zkey").read_bytes())
    assert keys[0] == keys[1]
    snarkjs(tmp_path, "zkey contribute p.zkey q.zkey -e=two")
    snarkjs(tmp_path, "zkey verify p.r1cs p.ptau q.zkey")


@needs_snarkjs
@pytest.mark.parametrize("name", MOST_ROWS)
def test_a_network_is_proven_from_pixels_to_classes(name, tmp_path):
    (model,) = (model for model in MODELS if model.name == name)
    found = reading(model, KEPT)
    assert found.holds
    assert found.constraints < MOST_ROWS[name]


def test_a_residual_network_has_fewer_than_400_000_constraints(tmp_path):
    form = machine.load(converted("resnet_digits8", tmp_path))
    assert export(form, "r1cs", "p").facts["constraints"] < 400_000


@needs_snarkjs
def test_a_convolutional_network_fulfils_its_constraints(tmp_path):
    """Its keys take long, and are made by `python -m benchmarks.proofs`; that its rows hold, snarkjs says of the files alone."""
    form = machine.load(converted("lenet_digits28", tmp_path))
    made = export(form, "r1cs", "p")
    assert made.facts["constraints"] + made.facts["public"] < 2**18
    for name in ("p.r1cs", "sample.wtns"):
        (tmp_path / name).write_bytes(made.binaries[name])
    snarkjs(tmp_path, "wtns check p.r1cs sample.wtns")
    wrong = bytearray(made.binaries["sample.wtns"])
    wrong[-40] ^= 1
    (tmp_path / "sample.wtns").write_bytes(wrong)
    with pytest.raises(subprocess.CalledProcessError):
        snarkjs(tmp_path, "wtns check p.r1cs sample.wtns")
