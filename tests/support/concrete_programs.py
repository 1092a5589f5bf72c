"""Folders of the target concrete, and the environment that has Concrete: CVM_CONCRETE_PYTHON, or .venv-fhe."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest

from cvm.export.targets import export
from cvm.proof.validate import Proven

ROOT = Path(__file__).resolve().parents[2]
MISSING = (
    "there is no Python with concrete-python: CVM_CONCRETE_PYTHON names none, and .venv-fhe is not there "
    "unless `make test-fhe` makes it"
)


def concrete_python() -> str:
    """Return the interpreter of the environment; skip the test, with a sentence, where there is none."""
    named = os.environ.get("CVM_CONCRETE_PYTHON")
    place = ROOT / ".venv-fhe" / "bin" / "python"
    if named:
        return named
    if not place.exists():
        pytest.skip(MISSING)
    return str(place)


def written(
    form: Proven, folder: Path, options: Mapping[str, object] | None = None
) -> Path:
    """Write the folder of a program, and return it."""
    folder.mkdir(parents=True)
    made = export(form, "concrete", "program", options)
    for file, content in made.contents.items():
        data = content if isinstance(content, bytes) else content.encode()
        (folder / file).write_bytes(data)
    return folder


def ran(folder: Path, *words: str, python: str = sys.executable) -> str:
    """Run a command of the folder's program; return what it prints."""
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    found = subprocess.run(
        [python, folder / "run.py", *words],
        capture_output=True,
        text=True,
        env=environment,
        check=False,
    )
    assert found.returncode == 0, found.stdout + found.stderr[-2000:]
    return found.stdout


def outputs(folder: Path, inputs, *words: str, python: str = sys.executable):
    """Return the outputs of a simulation by name."""
    np.savez(folder / "x.npz", **inputs)
    given = (
        "--input",
        str(folder / "x.npz"),
        "--output",
        str(folder / "y.npz"),
    )
    ran(folder, "simulate", *words, *given, python=python)
    with np.load(folder / "y.npz") as stored:
        return dict(stored)
