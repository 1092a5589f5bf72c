"""Finds the Python of an environment apart from ours, for packages that need an older numpy."""

from __future__ import annotations

import os
from pathlib import Path

import cvm
from cvm.errors import BadInput


def python_with(package: str, variable: str, folder: str, advice: str) -> Path:
    """The Python that has a package: the one that a variable of the environment names, else that of a folder beside ours.

    BadInput, which ends in the advice, if there is none.
    """
    named = os.environ.get(variable)
    beside = Path(cvm.__file__).parent.parent / folder / "bin" / "python"
    python = Path(named) if named else beside
    if not python.is_file():
        where = (
            f"{variable} names {python}" if named else f"there is no {python}"
        )
        raise BadInput(f"{package} is not installed: {where}; {advice}")
    return python
