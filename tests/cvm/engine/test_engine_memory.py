"""What an engine's threads take beside the arena."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from cvm.program import Input, Instruction, Output, Program, TensorType
from cvm.proof.validate import validate
from cvm.runtime import native

STATUS = Path("/proc/self/statm")

pytestmark = [
    pytest.mark.skipif(
        not native.available(), reason="the native engine is not built"
    ),
    pytest.mark.skipif(
        not STATUS.exists(),
        reason="this system does not tell how much memory a process has",
    ),
    pytest.mark.skipif(
        "asan" in os.environ.get("LD_PRELOAD", ""),
        reason="a sanitizer keeps what was freed",
    ),
]


def resident_bytes() -> int:
    return int(STATUS.read_text().split()[1]) * 4096


def test_a_layer_of_one_long_row_needs_room_for_one_row() -> None:
    depth, threads = 2**20, 8
    w, b = np.ones((1, depth), np.int8), np.zeros(1, np.int32)
    x = Input("x", TensorType("i8", (1, depth)), 0, 1)
    form = validate(
        Program(
            (x,),
            (w, b),
            (Instruction("dense", (0, 1, 2), {"input_zp": 0}),),
            (Output("y", 3),),
        )
    )
    engine, sample = native.Engine(form), {"x": np.ones((1, depth), np.int8)}
    before = resident_bytes()
    assert engine.run(sample, threads=threads)["y"].item() == depth
    assert resident_bytes() - before < threads * 8 * depth
