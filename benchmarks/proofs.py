"""What a proof costs: constraints, keys, proof and seconds of each network that a small setup can hold, each output compared.

`python -m benchmarks.proofs` (make privacy) prints a table; snarkjs is on the path. The setup is one that nobody is to
trust. Where an output differs from the reference machine's, or a changed output is still proven, it ends with exit
code 1. `--models lenet_digits28` proves a convolutional network, whose keys take long.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter

import click
import numpy as np

import cvm
from benchmarks.powers_of_tau import write_powers
from benchmarks.private_models import MODELS, PrivateModel
from cvm.export.targets import export
from cvm.program import IntArray
from cvm.runtime.bench import random_sample

FOLDER = Path(__file__).resolve().parent.parent / "build" / "privacy"
POWERS = 12  # 2^12 constraints, which a setup of every size is made for
NETWORKS = ("lr", "mlp", "tree")
TITLE = ("network", "constraints", "keys, s", "proving key, MB", "prove, s", "verify, s", "proof, bytes", "outputs")  # fmt: skip


@dataclass(frozen=True)
class ProofReading:
    """A network's proof; `holds` if its outputs are the program's and no other output is proven."""

    model: str
    constraints: int
    key_bytes: int
    proof_bytes: int
    seconds: tuple[float, float, float]  # keys, prove, verify
    holds: bool

    def row(self) -> tuple[str, ...]:
        """As the table has it."""
        keys, prove, verify = (f"{x:.1f}" for x in self.seconds)
        return (
            self.model,
            f"{self.constraints:,}",
            keys,
            f"{self.key_bytes / 1e6:.1f}",
            prove,
            verify,
            f"{self.proof_bytes:,}",
            "equal" if self.holds else "WRONG",
        )


@click.command()
@click.option(
    "--models", default=",".join(NETWORKS), help="Names divided by commas."
)
def main(models: str) -> None:
    """Prove one digit with each network."""
    if shutil.which("snarkjs") is None:
        sys.exit("proofs: snarkjs is not on the path: make test-proof")
    chosen = [m for m in MODELS if m.name in models.split(",")]
    readings = [reading(model, FOLDER) for model in chosen]
    for row in (
        TITLE,
        ("---",) * len(TITLE),
        *(network.row() for network in readings),
    ):
        print(f"| {' | '.join(row)} |")
    if not all(network.holds for network in readings):
        sys.exit("proofs: a proof is not of the reference machine's outputs")


def powers_of(folder: Path, bits: int) -> Path:
    """The setup for so many constraints, made once."""
    path = folder / f"powers{bits}.ptau"
    if not path.is_file():
        folder.mkdir(parents=True, exist_ok=True)
        unfinished = path.with_suffix(".new")
        write_powers(unfinished, bits, alone=bits > POWERS)
        unfinished.replace(path)
    return path


def reading(model: PrivateModel, folder: Path) -> ProofReading:
    """Keys, a proof of a digit, its verification, and that of another output."""
    program = model.converted(folder)
    form = cvm.load(program, engine="reference")
    artifact = export(form, "r1cs", "p")
    size = artifact.facts["constraints"] + artifact.facts["public"]
    powers = powers_of(folder, max(size.bit_length(), POWERS))
    with TemporaryDirectory() as name:
        work_folder = Path(name)
        (work_folder / "p.r1cs").write_bytes(artifact.binaries["p.r1cs"])
        start = perf_counter()
        for words in (
            f"groth16 setup p.r1cs {powers} a.zkey",
            "zkey contribute a.zkey p.zkey -e=two",
            f"zkey verify p.r1cs {powers} p.zkey",
            "zkey export verificationkey p.zkey key.json",
        ):
            _run(work_folder, "snarkjs", *words.split())
        times = [perf_counter() - start]
        sample = _sample(model, form, folder)
        np.savez(work_folder / "x.npz", **sample)
        command = (sys.executable, "-m", "cvm")
        prove = ("prove", str(program), "--input", "x.npz", "--key", "p.zkey")
        verify = ("verify-proof", str(program), "proof", "--key", "key.json")
        for words in ((*prove, "-o", "proof"), (*verify, "--json")):
            start = perf_counter()
            answer = _run(work_folder, *command, *words)
            times.append(perf_counter() - start)
        (expected,) = form.run(sample).values()
        (shown,) = json.loads(answer)["outputs"].values()
        _change_output(work_folder / "proof" / "public.json")
        refused = _exit_code(work_folder, *command, *verify) == 1
        return ProofReading(
            model.name,
            artifact.facts["constraints"],
            (work_folder / "p.zkey").stat().st_size,
            (work_folder / "proof" / "proof.json").stat().st_size,
            (times[0], times[1], times[2]),
            refused and shown == expected.tolist(),
        )


def _sample(
    model: PrivateModel, form: cvm.Program, folder: Path
) -> dict[str, IntArray]:
    """The first digit of calibration; of a network that is not trained here, integers of the declared intervals."""
    if not model.trained:
        return random_sample(form.program)
    with np.load(folder / "digits.npz") as stored:
        return form.quantize({"data": stored["data"][:1]})


def _change_output(path: Path) -> None:
    """Flip the last bit of the first output, behind the program's id and what is public."""
    public = json.loads(path.read_text())
    public[9] = str(int(public[9]) ^ 1)
    path.write_text(json.dumps(public))


def _run(folder: Path, *words: str) -> str:
    done = subprocess.run(
        words, cwd=folder, check=True, stdout=subprocess.PIPE, text=True
    )
    return done.stdout


def _exit_code(folder: Path, *words: str) -> int:
    done = subprocess.run(words, cwd=folder, check=False, capture_output=True)
    return done.returncode


if __name__ == "__main__":
    main()
