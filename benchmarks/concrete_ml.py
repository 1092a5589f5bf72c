"""Concrete-ML beside ours on one float perceptron of digits: accuracy in clear and encrypted, seconds, bootstraps.

`python -m benchmarks.concrete_ml --python .venv-concrete-ml/bin/python` (make concrete-ml) prints a table. Both get one
ONNX file, trained on 1,437 digits, and 256 of these to calibrate; 360 other digits judge them. `same` counts
the encrypted samples whose outputs are those of the same network in clear. Where ours differ, it ends with exit code 1.
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
import numpy.typing as npt
import onnx
import onnxruntime

import cvm
from benchmarks.private_models import digits, trained
from cvm.runtime.backends import BackendOptions, open_backend

ROOT = Path(__file__).resolve().parent.parent
PROCESS = Path(__file__).with_name("concrete_ml_process.py")
TRAINED, CALIBRATED = 1437, 256
TITLE = (
    *("bits", "by", "top-1, clear", "simulated, same", "encrypted, same"),
    *("bootstraps", "compile and keys, s", "run, s"),
)

Floats = npt.NDArray[Any]


@dataclass(frozen=True)
class FheReading:
    """One way to run the network with few bits; counts are (equal to the same network in clear, tried)."""

    bits: int
    by: str
    top1: float
    simulated: tuple[int, int] | None
    encrypted: tuple[int, int]
    bootstraps: int | None
    seconds: tuple[float, float]

    def row(self) -> tuple[str, ...]:
        """As the table has it."""
        simulated = self.simulated or ("-", "-")
        return (
            f"{self.bits}",
            self.by,
            f"{self.top1:.1%}",
            f"{simulated[0]} of {simulated[1]}" if self.simulated else "-",
            f"{self.encrypted[0]} of {self.encrypted[1]}",
            "-" if self.bootstraps is None else f"{self.bootstraps:,}",
            *(f"{x:.1f}" for x in self.seconds),
        )


@click.command()
@click.option("--python", required=True, help="The Python of Concrete-ML.")
@click.option("--bits", default="2", help="Numbers divided by commas.")
@click.option("--encrypted", default=2, show_default=True)
@click.option("--simulated", default=360, show_default=True)
def main(python: str, bits: str, encrypted: int, simulated: int) -> None:
    """Train, then run both with each number of bits."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        model = trained("mlp", folder / "data.npz", TRAINED)
        model.opset_import[0].version = 14  # the one that Concrete-ML reads
        onnx.save(model, folder / "model.onnx")
        images, labels = (x[TRAINED:] for x in digits())
        session = onnxruntime.InferenceSession(folder / "model.onnx")
        floats = np.concatenate([session.run(None, {"data": x[None]})[0] for x in images])  # fmt: skip
        print(f"float: top-1 {_top1(floats, labels):.1%} of {len(labels)}")
        readings = []
        for number in map(int, bits.split(",")):
            readings.append(_ours(folder, number, (images, labels), encrypted))
            print(f"| {' | '.join(readings[-1].row())} |", file=sys.stderr)
            counts = {"simulated": simulated, "encrypted": encrypted}
            settings = {"bits": number, **counts}
            readings.append(_theirs(folder, python, settings, (images, labels)))
    for row in (
        TITLE,
        ("---",) * len(TITLE),
        *(reading.row() for reading in readings),
    ):
        print(f"| {' | '.join(row)} |")
    if any(
        reading.by == "cvm" and reading.encrypted[0] < encrypted
        for reading in readings
    ):
        sys.exit("concrete-ml: an answer of ours differs from the reference's")


def _top1(outputs: Floats, labels: Floats) -> float:
    return float((outputs.reshape(len(labels), -1).argmax(1) == labels).mean())


def _ours(
    folder: Path, bits: int, test: tuple[Floats, Floats], encrypted: int
) -> FheReading:
    program = folder / f"{bits}.cvm"
    words = ("--bits", str(bits), "--scales", "shift", "-o", str(program))
    source = (str(folder / "model.onnx"), "--data", str(folder / "data.npz"))
    command = (sys.executable, "-m", "mrt", "convert", "-q")
    subprocess.run([*command, *source, *words], check=True, cwd=ROOT)
    form = cvm.load(program, engine="reference")
    images, labels = test
    (x,) = form.quantize({"data": images}).values()
    (clear,) = form.run({"data": x}).values()
    machine = open_backend("concrete", BackendOptions(), form)
    same = 0
    for number in range(encrypted):
        (y,) = machine.run({"data": x[number : number + 1]}).values()
        same += np.array_equal(y.reshape(-1), clear[number].reshape(-1))
    effort = machine.effort
    seconds = effort.compile_seconds, float(np.mean(effort.seconds))
    top1 = _top1(clear, labels)
    return FheReading(bits, "cvm", top1, None, (same, encrypted), None, seconds)


def _theirs(
    folder: Path,
    python: str,
    settings: Mapping[str, int],
    test: tuple[Floats, Floats],
) -> FheReading:
    images, labels = test
    with np.load(folder / "data.npz") as stored:
        calibration = stored["data"][:CALIBRATED]
    np.savez(folder / "x.npz", calibration=calibration, test=images)
    (folder / "settings.json").write_text(json.dumps(settings))
    done = subprocess.run(
        [python, str(PROCESS), str(folder)],
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    )
    facts = json.loads(done.stdout.splitlines()[-1])
    with np.load(folder / "y.npz") as stored:
        outputs = {name: stored[name] for name in stored.files}
    counts = {
        name: (_same(outputs["clear"], outputs[name]), len(outputs[name]))
        for name in ("simulated", "encrypted")
    }
    took = facts["seconds"]
    return FheReading(
        settings["bits"],
        "Concrete-ML",
        _top1(outputs["clear"], labels),
        counts["simulated"],
        counts["encrypted"],
        facts["bootstraps"],
        (took["compile"] + took["keygen"], took["run"]),
    )


def _same(clear: Floats, outputs: Floats) -> int:
    """How many samples have the same outputs."""
    return int((clear[: len(outputs)] == outputs).all(axis=1).sum())


if __name__ == "__main__":
    main()
