"""Hostile models through the command: converted or refused within seconds, in bounded memory, in a few lines."""

import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.hostile_models import SMALL, long_chains, write_mxnet_chain

ENVIRONMENT = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
MEMORY = 6 << 30
MOST_LINES = 24
LONG_CHAINS = long_chains(20_000)


def convert(folder: Path, name: str, *options: str, seconds: int) -> str:
    """Convert within limits; what it printed to stderr, after checking what every refusal must be."""

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))

    words = ["convert", name, "-o", "p.cvm", "--refine", "none"]
    words += ["--samples", "2", *options]
    result = subprocess.run(
        [sys.executable, "-m", "mrt", *words],
        cwd=folder,
        capture_output=True,
        text=True,
        preexec_fn=limit,
        env=ENVIRONMENT,
        check=False,
    )
    lines = result.stderr.splitlines()
    assert result.returncode in (0, 2), result.stderr[-2000:]
    assert "Traceback" not in result.stderr and len(lines) <= MOST_LINES
    assert all(len(line) <= 600 for line in lines)
    assert (folder / "p.cvm").exists() == (result.returncode == 0)
    return result.stderr


@pytest.mark.parametrize("name", SMALL)
def test_small_files_that_ask_for_much(name, tmp_path):
    (tmp_path / "m.onnx").write_bytes(SMALL[name]())
    said = convert(tmp_path, "m.onnx", seconds=25)
    assert "not enough memory" not in said


@pytest.mark.slow
@pytest.mark.parametrize("operator", LONG_CHAINS)
def test_long_chains(operator, tmp_path):
    (tmp_path / "m.onnx").write_bytes(LONG_CHAINS[operator]())
    convert(tmp_path, "m.onnx", seconds=90)


@pytest.mark.slow
def test_a_long_chain_of_mxnet(tmp_path):
    path = write_mxnet_chain(tmp_path, 20_000)
    convert(tmp_path, path.name, "--shape", "data=1,3,8,8", seconds=90)
