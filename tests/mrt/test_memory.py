"""Memory is given back where the system shows how much a process has; searches for what nothing uses are short."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest

from mrt import memory

PROGRAM = """
import gc
from mrt.cli import cli

assert not gc.get_freeze_count()
for name in ("one.cvm", "other.cvm"):
    cli(["convert", "m.onnx", "-q", "-o", name], standalone_mode=False)
    print(gc.get_freeze_count(), len(gc.get_objects()))
"""


def save_a_product(path):
    info = onnx.helper.make_tensor_value_info
    graph = onnx.helper.make_graph(
        [onnx.helper.make_node("Mul", ["x", "w"], ["y"])],
        "g",
        [info("x", 1, [1, 4])],
        [info("y", 1, [1, 4])],
        [onnx.numpy_helper.from_array(np.ones(4, np.float32), "w")],
    )
    opset = onnx.helper.make_opsetid("", 17)
    onnx.save(
        onnx.helper.make_model(graph, opset_imports=[opset], ir_version=9), path
    )


def test_a_conversion_searches_few_objects_for_what_nothing_uses(tmp_path):
    save_a_product(tmp_path / "m.onnx")
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    lines = [list(map(int, line.split())) for line in done.stdout.splitlines()]
    (aside, searched), (aside_later, _) = lines
    assert searched < aside
    assert aside_later <= aside


def test_a_system_that_shows_no_memory_stops_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A chroot may have no /proc."""
    monkeypatch.setattr(memory, "STATM", tmp_path / "none")
    monkeypatch.setattr(memory, "_trim", lambda: pytest.fail("gave back"))
    with memory.giving_back():
        held = bytearray(2 * memory.GROWTH)
    memory.Surplus().give_back()
    assert len(held) == 2 * memory.GROWTH
