"""The verifier that snarkjs writes in Solidity, on an Ethereum machine: it accepts a proof, and no other outputs.

`EVM_PYTHON` names a Python with py-evm (`pip install py-evm`, in an environment of its own); solcjs is `npm install -g solc`.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from cvm.export.targets import export
from cvm.proof.validate import validate
from tests.cvm.export.test_r1cs import classifier

ROOT = Path(__file__).resolve().parents[3]
PYTHON = os.environ.get("EVM_PYTHON", "")
MISSING = [name for name in ("snarkjs", "solcjs") if shutil.which(name) is None]
if not Path(PYTHON).is_file():
    MISSING.append("EVM_PYTHON, a Python with py-evm")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(bool(MISSING), reason=f"not here: {', '.join(MISSING)}"),
]
COMMANDS = (
    "snarkjs powersoftau new bn128 9 a.ptau",
    "snarkjs powersoftau contribute a.ptau b.ptau -e=one",
    "snarkjs powersoftau prepare phase2 b.ptau c.ptau",
    "snarkjs groth16 setup p.r1cs c.ptau a.zkey",
    "snarkjs zkey contribute a.zkey p.zkey -e=two",
    "snarkjs zkey export solidityverifier p.zkey verifier.sol",
    "solcjs --bin verifier.sol -o built",
    "snarkjs groth16 prove p.zkey sample.wtns proof.json public.json",
)
CALL = "snarkjs zkey export soliditycalldata public.json proof.json"


def test_an_ethereum_machine_accepts_the_proof(tmp_path):
    made = export(validate(classifier()), "r1cs", "p")
    for name, content in made.binaries.items():
        (tmp_path / name).write_bytes(content)
    for words in COMMANDS:
        subprocess.run(words.split(), cwd=tmp_path, check=True)
    text = subprocess.run(
        CALL.split(), cwd=tmp_path, check=True, capture_output=True, text=True
    )
    right = json.loads(f"[{text.stdout}]")
    calls = [right]
    for place in range(len(right[3])):
        wrong = json.loads(json.dumps(right))
        wrong[3][place] = hex(int(wrong[3][place], 0) ^ 1)
        calls.append(wrong)
    (contract,) = (tmp_path / "built").glob("*.bin")
    script = str(ROOT / "tests/support/evm_call.py")
    done = subprocess.run(
        [PYTHON, script, str(contract)],
        input=json.dumps(calls),
        check=True,
        capture_output=True,
        text=True,
    )
    found = json.loads(done.stdout)
    answers = [call["answer"] for call in found["calls"]]
    assert answers == [1] + [0] * 13
    assert found["calls"][0]["gas"] < 300_000
    assert found["deploy"] < 600_000
