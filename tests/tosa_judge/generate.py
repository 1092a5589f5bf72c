"""Arm's tests: `tosa_verif_build_tests` writes them once into a folder, those that must run and those that must be rejected."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

KINDS = ("positive", "negative")
DONE = ".done"
FAILED = re.compile(r"Failed to create (\d+) tests")
LIBRARY = """
import pathlib, tosa_reference_model
print(pathlib.Path(tosa_reference_model.__file__).with_name("libtosa_reference_generate_lib.so"))
"""


class NoTestsError(Exception):
    """The generator cannot be run."""


def generate(python: Path, folder: Path) -> None:
    """Write both kinds, each by a process of its own, unless they are there."""
    library = _library(python)
    running = []
    for kind in KINDS:
        place = folder / kind
        if not (place / DONE).exists():
            place.mkdir(parents=True, exist_ok=True)
            given = _command(python, library, kind, place)
            log = open(folder / f"{kind}.log", "w")  # noqa: SIM115
            running.append((place, log, subprocess.Popen(given, stdout=log, stderr=log)))  # fmt: skip
    for place, log, process in running:
        code = process.wait()
        log.close()
        failed = FAILED.search(Path(log.name).read_text()) if code else None
        if code and not failed:
            raise NoTestsError(f"exit code {code}; {log.name} has why")
        (place / DONE).write_text(failed[1] if failed else "0")


def not_written(folder: Path) -> int:
    """How many tests the generator could not write."""
    texts = [(folder / kind / DONE).read_text() for kind in KINDS]
    return sum(int(text or 0) for text in texts)


def _library(python: Path) -> str:
    done = subprocess.run(
        [str(python), "-c", LIBRARY], capture_output=True, text=True
    )
    if done.returncode:
        raise NoTestsError(done.stderr.strip().splitlines()[-1])
    return done.stdout.strip()


def _command(python: Path, library: str, kind: str, place: Path) -> list[str]:
    """The integer profile without extensions, of the generator's own seed."""
    tool = python.with_name("tosa_verif_build_tests")
    given = ["--profile", "tosa-pro-int", "--extension", "none"]
    given += ["--test-type", kind, "--generate-lib-path", library]
    return [str(tool), *given, "-o", str(place)]


def folders_of(folder: Path, kind: str, only: str) -> Iterator[Path]:
    """Folders of tests, in order of their names: OPERATOR/TEST."""
    for path in sorted((folder / kind).glob("*/*/desc.json")):
        if only in path.parent.name:
            yield path.parent
