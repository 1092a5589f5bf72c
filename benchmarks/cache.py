"""Keeps prepared models in build/bench, in one folder for each.

The folder is named after the origins of the model.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable
from functools import cache
from importlib.metadata import version
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CACHE = ROOT / "build" / "bench"

# The files that decide the bytes of a converted program: after a change to any, it is
# made anew.
CONVERTER = (
    "mrt/**/*.py",
    "cvm/reference/*.py",
    "cvm/file/format.py",
    "cvm/instructions.toml",
)


def made(
    name: str,
    made_from: object,
    make: Callable[[Path], None],
    *,
    root: Path = CACHE,
) -> Path:
    """Return the folder that `make` filled for these origins, which JSON must be able to hold.

    If an earlier run filled it, `make` is not called.
    """
    key = hashlib.sha256(
        json.dumps(made_from, sort_keys=True).encode()
    ).hexdigest()[:16]
    folder = root / f"{name}-{key}"
    if not folder.is_dir():
        unfinished = root / f"{name}-{key}.unfinished"
        shutil.rmtree(unfinished, ignore_errors=True)
        unfinished.mkdir(parents=True)
        make(unfinished)
        unfinished.rename(folder)
    return folder


@cache
def digest(path: Path) -> str:
    """Return the SHA-256 of a file."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


@cache
def converter() -> str:
    """Return the SHA-256 of the sources that decide a converted program."""
    paths = sorted(
        {path for pattern in CONVERTER for path in ROOT.glob(pattern)}
    )
    return hashlib.sha256(
        "".join(digest(path) for path in paths).encode()
    ).hexdigest()


def versions(*packages: str) -> dict[str, str]:
    """Return the installed versions; raise PackageNotFoundError for an absent package."""
    return {package: version(package) for package in packages}
