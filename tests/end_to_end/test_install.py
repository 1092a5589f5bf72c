"""`pip install .` for real: with a compiler the engine comes along, without one everything else does."""

import os
import shutil
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

import numpy as np
import pytest

from tests.support.command import NO_ENGINE
from tests.support.run_programs import doubler, save, save_array

ROOT = Path(__file__).resolve().parent.parent.parent
pytestmark = pytest.mark.slow
SOURCES = (
    "mrt",
    "cvm",
    "CMakeLists.txt",
    "pyproject.toml",
    "README.md",
    "LICENSE",
)


def installed(folder: Path, **environment: str) -> Path:
    """The Python of a new environment, in which the project is installed; its dependencies are borrowed."""
    sources, place = folder / "sources", folder / "venv"
    sources.mkdir()
    for name in SOURCES:
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copyfile
        copy(ROOT / name, sources / name)
    venv.create(place, symlinks=True)
    python = place / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    pip = [
        sys.executable,
        "-m",
        "pip",
        "--disable-pip-version-check",
        "--python",
        str(python),
    ]
    done = subprocess.run(
        [*pip, "install", "--no-deps", str(sources)],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
    )
    if "No matching distribution found for" in done.stderr:
        pytest.skip(
            "no package index can be reached, which an installation needs"
        )
    assert done.returncode == 0, done.stdout + done.stderr
    return python


def run(
    python: Path, folder: Path, *arguments: str
) -> subprocess.CompletedProcess[str]:
    """`cvm` as installed: the borrowed packages come by PYTHONPATH, where this project's editable link does nothing."""
    environment = {**os.environ, "PYTHONPATH": sysconfig.get_path("purelib")}
    environment.pop("CVM_ENGINE", None)
    command = [str(python), "-m", "cvm", *arguments]
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True
    )


def check_run(python: Path, folder: Path, *options: str, said: str) -> None:
    save(doubler(), folder)
    save_array([[1, 2, 3]], folder)
    done = run(
        python,
        folder,
        "run",
        "p.cvm",
        "--input",
        "x.npy",
        "-o",
        "y.npz",
        *options,
    )
    assert (done.returncode, done.stdout, done.stderr) == (
        0,
        "wrote y.npz\n",
        said,
    )
    with np.load(folder / "y.npz") as found:
        assert found["y"].tolist() == [[2, 4, 6]]


def package(python: Path, name: str) -> Path:
    (found,) = python.parent.parent.rglob(f"site-packages/{name}")
    return found


def extensions(python: Path) -> list[str]:
    """Without what follows the first dot."""
    found = [
        *package(python, "cvm").glob("_*.*"),
        *package(python, "mrt").glob("_*.*"),
    ]
    return sorted(
        path.name.split(".")[0] for path in found if path.suffix != ".py"
    )


def test_without_a_compiler_everything_runs_on_the_reference(
    tmp_path: Path,
) -> None:
    python = installed(
        tmp_path, CXX=shutil.which("false") or "false", CVM_REQUIRE_ENGINE=""
    )
    assert extensions(python) == []
    check_run(python, tmp_path, said=NO_ENGINE)


@pytest.mark.skipif(
    not (shutil.which("g++") or shutil.which("clang++")),
    reason="there is no C++ compiler here",
)
def test_with_a_compiler_the_engine_is_there_and_its_sources_are_not(
    tmp_path: Path,
) -> None:
    python = installed(tmp_path, CVM_REQUIRE_ENGINE="1")
    assert extensions(python) == ["_compiled", "_engine"]
    assert not (package(python, "cvm") / "engine").exists()
    assert {
        path.suffix for path in (package(python, "mrt") / "compiled").iterdir()
    } <= {".py", ""}
    check_run(python, tmp_path, "--engine", "native", said="")
