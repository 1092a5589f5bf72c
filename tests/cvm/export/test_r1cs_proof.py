"""A proof by snarkjs, from the setup of the keys to its verification: a changed output is no longer proven."""

from __future__ import annotations

import json
import shutil
import subprocess

import numpy as np
import pytest

from cvm.export.targets import export
from cvm.file import format as file_format
from cvm.proof.validate import validate
from tests.cvm.export.test_r1cs import classifier
from tests.support.command import cvm, said

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        shutil.which("snarkjs") is None,
        reason="snarkjs is not on the path: npm install -g snarkjs",
    ),
]


def run(folder, words):
    subprocess.run(["snarkjs", *words.split()], cwd=folder, check=True)


@pytest.fixture(name="keys", scope="module")
def _keys(tmp_path_factory):
    """The program, its constraints, and keys of a setup with contributions and of one without."""
    folder = tmp_path_factory.mktemp("keys")
    file_format.write(classifier(), folder / "p.cvm")
    made = export(validate(classifier()), "r1cs", "p")
    for name, content in made.binaries.items():
        (folder / name).write_bytes(content)
    for words in (
        "wtns check p.r1cs sample.wtns",
        "powersoftau new bn128 9 a.ptau",
        "powersoftau contribute a.ptau b.ptau -e=one",
        "powersoftau prepare phase2 b.ptau c.ptau",
        "groth16 setup p.r1cs c.ptau a.zkey",
        "zkey contribute a.zkey p.zkey -e=two",
        "zkey verify p.r1cs c.ptau p.zkey",
        "zkey export verificationkey p.zkey key.json",
        "zkey export verificationkey a.zkey plain.json",
    ):
        run(folder, words)
    return folder


def test_a_proof_is_of_one_program_and_its_outputs(keys, tmp_path):
    program, proof = keys / "p.cvm", tmp_path / "proof"
    x = np.array([[1, -20, 90, 4, 5, 6]], np.int8)
    np.save(tmp_path / "x.npy", x)
    words = ("--input", tmp_path / "x.npy", "--opening", tmp_path / "salts")
    bound = json.loads(cvm("commit", program, *words, "--json").stdout)
    key = ("--key", keys / "p.zkey")
    assert cvm("prove", program, *words, *key, "-o", proof).exit_code == 0
    verify = ("verify-proof", program, proof, "--key", keys / "key.json")
    found = cvm(*verify, "--json")
    assert found.exit_code == 0
    # by hand: sums - 3 per input, a third of each, less 7
    w, b, _, _ = classifier().constants
    sums = (x.astype(int) - 3) @ w.T.astype(int) + b
    expected = np.clip((sums * 1431655765 + 2**31 >> 32) - 7, -128, 127)
    shown = json.loads(found.stdout)
    assert shown["outputs"] == {"y": expected.tolist()}
    assert shown["commitments"] == {"inputs": bound["inputs"], "outputs": {}}
    public = json.loads((proof / "public.json").read_text())
    assert len(public) == 8 + 1 + 3 + 1
    for place in range(8, len(public)):
        changed = [*public]
        changed[place] = str(int(public[place]) ^ 1)
        (proof / "public.json").write_text(json.dumps(changed))
        wrong = cvm(*verify)
        assert wrong.exit_code == 1
        assert wrong.stdout.startswith("the proof is not valid")
    plain = ("verify-proof", program, proof, "--key", keys / "plain.json")
    assert "nobody contributed" in said(cvm(*plain), 2)


def test_another_key_makes_no_proof(keys, tmp_path):
    np.save(tmp_path / "x.npy", np.zeros((1, 6), np.int8))
    (tmp_path / "no.zkey").write_bytes(b"zkey" + bytes(40))
    words = ("--input", tmp_path / "x.npy", "--key", tmp_path / "no.zkey")
    text = said(cvm("prove", keys / "p.cvm", *words, "-o", tmp_path / "o"), 2)
    assert "snarkjs made no proof" in text
    assert not (tmp_path / "o").exists()
