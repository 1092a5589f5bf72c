"""Looks at the files that a command names, before anything slow is imported: they exist, and none stands for another."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cvm.file.format import is_program
from mrt.errors import BadData, BadModel, BadOption, MissingData, MissingModel

_DATA = "an .npz, a .npy or a folder of images"


def check_files(model: Path | None, options: Mapping[str, Any]) -> None:
    """Raise BadModel, BadData or BadOption for a file that is not there, and for a program in the place of a model."""
    config = options.get("config")
    if config is not None and _is_missing(config):
        raise BadOption(f"{config}: cannot be read (No such file or directory)")
    if model is not None:
        _check_model(model)
    for name in ("params", "table_path"):
        path = options.get(name)
        if path is not None and _is_missing(path):
            raise MissingModel(f"{path}: No such file or directory")
    data = options.get("data")
    if data is not None:
        if _is_missing(data):
            raise MissingData(
                f"{data}: No such file or directory; expected {_DATA}"
            )
        if is_program(data):
            raise BadData(f"{data}: is a program (.cvm); expected {_DATA}")


def _check_model(path: Path) -> None:
    if _is_missing(path):
        raise MissingModel(f"{path}: No such file or directory")
    if is_program(path):
        raise BadModel(
            f"{path}: is a program already (.cvm); give the model that it was made from, or see what it is by: cvm show {path}"
        )


def check_order(model: Path | None, program: Path, usage: str) -> None:
    """Raise BadOption if a model and a program are given in each other's place, or MissingModel if the program is not there."""
    if _is_missing(program):
        raise MissingModel(f"{program}: No such file or directory")
    if model is not None and is_program(model) and not is_program(program):
        raise BadOption(
            f"{model} is the program and {program} the model: swap them; {usage}"
        )


def _is_missing(path: Path) -> bool:
    """Whether nothing has this name; what cannot be looked at is refused where it is read."""
    try:
        path.stat()
    except FileNotFoundError:
        return True
    except (OSError, ValueError):
        return False
    return False
