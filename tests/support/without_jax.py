"""A command in a process that finds no jax."""

from __future__ import annotations

import subprocess
import sys

PROGRAM = """\
import runpy, sys
sys.modules["jax"] = None
module, *sys.argv[1:] = sys.argv[1:]
runpy.run_module(module, run_name="__main__")
"""


def without_jax(module: str, *words: str) -> tuple[int, str]:
    """Return the exit code and what is printed on stderr."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, module, *words],
        capture_output=True,
        text=True,
    )
    return done.returncode, done.stderr
