"""Commands of an exported folder, in the environment that has Concrete, apart from ours because it needs an older numpy."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from cvm.errors import BadInput
from cvm.runtime.other_python import python_with

VARIABLE = "CVM_CONCRETE_PYTHON"
FOLDER = ".venv-fhe"
HOW_TO_GET_CONCRETE = (
    f"`make test-fhe` installs it in {FOLDER}, or {VARIABLE} names a Python 3.11 in which "
    "cvm/export/concrete/templates/requirements.txt is installed"
)


def concrete_python() -> Path:
    """The Python that has Concrete; BadInput if there is none."""
    return python_with("Concrete", VARIABLE, FOLDER, HOW_TO_GET_CONCRETE)


def ran(folder: Path, *words: str) -> str:
    """The output of a command of the folder's program; BadInput with its last line if it fails."""
    # Our package is for another Python, and the program needs nothing of it.
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    completed = subprocess.run(
        [str(concrete_python()), str(folder / "run.py"), *words],
        capture_output=True,
        env=environment,
        check=False,
    )
    if completed.returncode:
        lines = completed.stderr.decode(errors="replace").strip().splitlines()
        last = lines[-1] if lines else f"exit code {completed.returncode}"
        raise BadInput(f"concrete: {last}")
    return completed.stdout.decode(errors="replace")
