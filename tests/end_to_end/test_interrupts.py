"""An interrupt while a command still imports what it needs ends as one later does, not in a traceback."""

import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("program", ["cvm", "mrt"])
@pytest.mark.parametrize("module", ["click", "json"])
def test_an_interrupt_during_imports_is_said_in_one_line(
    program: str, module: str, tmp_path: Path
) -> None:
    """The module that is imported then interrupts."""
    (tmp_path / f"{module}.py").write_text("raise KeyboardInterrupt\n")
    paths = os.pathsep.join((str(tmp_path), str(ROOT)))
    result = subprocess.run(
        [sys.executable, "-m", program, "--version"],
        env={**os.environ, "PYTHONPATH": paths},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (result.returncode, result.stdout) == (130, "")
    assert result.stderr == f"{program}: interrupted\n"


def test_the_console_scripts_are_the_modules_that_catch_it() -> None:
    content = tomllib.loads((ROOT / "pyproject.toml").read_text())
    assert content["project"]["scripts"] == {
        name: f"{name}.__main__:main" for name in ("mrt", "cvm")
    }
