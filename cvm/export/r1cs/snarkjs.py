"""Groth16 proofs by snarkjs, a command that users install themselves (GPL-3.0; nothing of it is part of cvm)."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from tempfile import TemporaryDirectory

from cvm.errors import BadInput
from cvm.file.disk import read_bounded

INSTALL = "npm install -g snarkjs"
MOST_BYTES = 2**26  # of a proof or its signals
LINES_SHOWN = 3


def prove(key: Path, witness: bytes) -> dict[str, str | bytes]:
    """The files proof.json and public.json for a witness, by a proving key; BadInput if there is no proof."""
    with TemporaryDirectory(prefix="cvm-prove-") as folder:
        place = Path(folder)
        (place / "input.wtns").write_bytes(witness)
        names = ("proof.json", "public.json")
        written = [str(place / name) for name in names]
        files = [str(key), str(place / "input.wtns"), *written]
        completed = _run(["groth16", "prove", *files])
        if completed.returncode or not all(
            map(Path.exists, map(Path, written))
        ):
            raise BadInput(
                f"snarkjs made no proof with {key}: {_last_words(completed)}; is it the key of this program's constraints?"
            )
        return {name: read_bounded(place / name, MOST_BYTES) for name in names}


def is_valid(key: Path, public: Path, proof: Path) -> bool:
    """Whether snarkjs accepts a proof of these public signals, by a verification key."""
    completed = _run(["groth16", "verify", str(key), str(public), str(proof)])
    return completed.returncode == 0 and "OK!" in completed.stdout


def _run(words: list[str]) -> subprocess.CompletedProcess[str]:
    program = shutil.which("snarkjs")
    if program is None:
        raise BadInput(f"snarkjs is not on the path; to install it: {INSTALL}")
    return subprocess.run(
        [program, *words], capture_output=True, text=True, check=False
    )


def _last_words(completed: subprocess.CompletedProcess[str]) -> str:
    lines = [*completed.stdout.splitlines(), *completed.stderr.splitlines()]
    printed = [line.strip() for line in lines if line.strip()]
    return (
        " / ".join(printed[-LINES_SHOWN:])
        or f"exit code {completed.returncode}"
    )
