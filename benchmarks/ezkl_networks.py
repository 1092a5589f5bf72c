"""EZKL on the networks that `make test-proof` proves: rows, key, proof, seconds, and whether its outputs are the integers.

`python -m benchmarks.ezkl_networks --python .venv-ezkl/bin/python` (make ezkl) prints a table. EZKL reads ONNX and computes in
fixed point, so that it gets the 8-bit programs with `--scales shift`, as floats that are integers, with scales chosen
by hand. An output that differs ends it with exit code 1.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import click
import numpy as np
import onnx

import cvm
from benchmarks.integer_onnx import integer_onnx
from benchmarks.private_models import MODELS, PrivateModel

FOLDER = Path(__file__).resolve().parent.parent / "build" / "privacy"
PROCESS = Path(__file__).with_name("ezkl_process.py")
OPTIONS = ("--bits", "8", "--scales", "shift")
SETTINGS: Mapping[str, Any] = {
    "input_scale": 0,
    "param_scale": 14,  # 2^-14 is the least factor
    "scale_rebase_multiplier": 1,
    "logrows": 15,
    "lookup_range": [-32768, 32768],
    "decomp_base": 16384,
    "decomp_legs": 4,  # with 2, numbers are too large to be represented
}
TITLE = ("network", "rows", "keys, s", "proving key", "prove, s", "verify, s", "proof", "outputs")  # fmt: skip
NETWORKS = ("lr", "mlp", "tree")


@dataclass(frozen=True)
class EzklReading:
    """What EZKL reports of one network, and whether its outputs are the program's."""

    model: str
    facts: Mapping[str, Any]
    equal: bool

    def row(self) -> tuple[str, ...]:
        """As the table has it."""
        seconds = self.facts["seconds"]
        return (
            self.model,
            f"{self.facts['rows']:,}",
            f"{seconds['setup']:.1f}",
            f"{self.facts['key'] / 1e6:,.0f} MB",
            f"{seconds['prove']:.1f}",
            f"{seconds['verify']:.2f}",
            f"{self.facts['proof']:,} bytes",
            "equal" if self.equal else "DIFFERENT",
        )


@click.command()
@click.option("--python", required=True, help="The Python that has EZKL.")
@click.option(
    "--models", default=",".join(NETWORKS), help="Names divided by commas."
)
def main(python: str, models: str) -> None:
    """Prove one digit with each network."""
    chosen = [m for m in MODELS if m.name in models.split(",")]
    readings = []
    for model in chosen:
        readings.append(reading(model, python))
        print(f"| {' | '.join(readings[-1].row())} |", file=sys.stderr)
    for row in (
        TITLE,
        ("---",) * len(TITLE),
        *(network.row() for network in readings),
    ):
        print(f"| {' | '.join(row)} |")
    if not all(network.equal for network in readings):
        sys.exit("ezkl: an output differs from the reference machine's")


def reading(model: PrivateModel, python: str) -> EzklReading:
    """Have the first digit of calibration proven."""
    program = model.converted(FOLDER, *OPTIONS)
    form = cvm.load(program, engine="reference")
    with np.load(FOLDER / "digits.npz") as stored:
        digit = {form.program.inputs[0].name: stored["data"][:1]}
    sample = form.quantize(digit)
    (expected,) = form.run(sample).values()
    (x,) = sample.values()
    with TemporaryDirectory() as name:
        folder = Path(name)
        onnx.save(integer_onnx(form), folder / "model.onnx")
        numbers = x.reshape(-1).astype(float).tolist()
        (folder / "x.json").write_text(json.dumps(numbers))
        (folder / "settings.json").write_text(json.dumps(SETTINGS))
        command = [python, str(PROCESS), str(folder)]
        done = subprocess.run(
            command, check=True, stdout=subprocess.PIPE, text=True
        )
    facts = json.loads(done.stdout.splitlines()[-1])
    equal = facts["outputs"] == expected.reshape(-1).tolist()
    return EzklReading(model.name, facts, equal)


if __name__ == "__main__":
    main()
