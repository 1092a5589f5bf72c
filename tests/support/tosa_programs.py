"""Exported TOSA, run by Arm's reference model in an environment of its own."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from cvm.export.tosa.model import graph_of
from cvm.program import IntArray
from cvm.proof.validate import Proven
from cvm.tosa.graph import to_bytes

ROOT = Path(__file__).resolve().parents[2]
ENVIRONMENT = ROOT / ".venv-tosa" / "bin" / "python"
PYTHON = Path(os.environ.get("TOSA_PYTHON", ENVIRONMENT))
HAS_TOSA = PYTHON.exists()
NO_TOSA = "tosa-tools is not installed: make tosa installs it"
WORKER = ROOT / "tests" / "tosa_judge" / "reference_model.py"
PATIENCE = 600.0  # seconds for one process


@dataclass(frozen=True)
class TosaAnswer:
    """What the reference model gives: a status in its words, and the outputs."""

    status: str
    outputs: tuple[IntArray, ...]
    error: str = ""


Job = tuple[bytes, Sequence[IntArray]]


def answers_of(jobs: Sequence[Job]) -> list[TosaAnswer]:
    """Return the answer to each graph on its inputs. A process that dies has answered with an error, and another one goes on."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for number, (graph, arrays) in enumerate(jobs):
            (folder / f"{number}.tosa").write_bytes(graph)
            held = [signed(array) for array in arrays]
            np.savez(folder / f"{number}.npz", *held)
        lines = _lines(folder, len(jobs))
        return [_answer(folder, *item) for item in enumerate(lines)]


def _lines(folder: Path, count: int) -> list[dict[str, str]]:
    path = folder / "answers"
    path.touch()
    while True:
        lines = [json.loads(line) for line in path.read_text().splitlines()]
        if len(lines) == count:
            return lines
        given = [str(PYTHON), str(WORKER), str(folder), str(count), str(len(lines))]  # fmt: skip
        done = subprocess.run(given, capture_output=True, timeout=PATIENCE, check=False)  # fmt: skip
        if done.returncode:
            last = done.stderr.decode(errors="replace").strip()[-200:]
            died = {"status": "TOSA_ERROR", "error": f"it died: {last}"}
            with path.open("a") as answers:
                answers.write(json.dumps(died) + "\n")


def _answer(folder: Path, number: int, line: Mapping[str, str]) -> TosaAnswer:
    outputs: list[IntArray] = []
    path = folder / f"{number}.out.npz"
    if path.exists():
        with np.load(path) as stored:
            outputs = [stored[f"arr_{i}"] for i in range(len(stored.files))]
    return TosaAnswer(line["status"], tuple(outputs), line["error"])


def signed(array: IntArray) -> IntArray:
    """Return bytes without sign as those with the same bits."""
    return array.view(np.int8) if array.dtype == np.uint8 else array


def job_of(form: Proven, sample: Mapping[str, IntArray]) -> Job:
    """Return an exported program with a sample."""
    arrays = [sample[item.name] for item in form.program.inputs]
    return to_bytes(graph_of(form)), arrays


def named(form: Proven, answer: TosaAnswer) -> dict[str, IntArray]:
    """Return the outputs by name, each in its dtype; nothing if the graph is not valid."""
    if answer.status != "TOSA_VALID":
        return {}
    ports = zip(form.program.outputs, answer.outputs, strict=True)
    return {
        item.name: array.view(np.uint8)
        if form.types[item.value].dtype == "u8"
        else array
        for item, array in ports
    }


def differing(answer: TosaAnswer, expected: Sequence[IntArray]) -> str:
    """Return what differs from these outputs, or nothing."""
    if answer.status != "TOSA_VALID":
        return f"{answer.status} {answer.error}"
    pairs = zip(answer.outputs, expected, strict=True)
    same = [
        found.dtype == signed(array).dtype
        and np.array_equal(found, signed(array))
        for found, array in pairs
    ]
    return "" if all(same) else f"outputs {same}"
