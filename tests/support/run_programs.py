"""Programs small enough to check by hand, for the tests of all features around a run."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from cvm.file import format as file_format
from cvm.program import (
    Input,
    Instruction,
    Meaning,
    Metadata,
    Output,
    Program,
    TensorType,
)

MEANINGS = Metadata(
    inputs={"x": Meaning(0.5, 0)},
    outputs={"y": Meaning(0.25, 1)},
    values={1: Meaning(0.5, 0, "sum_1")},
)


def doubler(
    *,
    shape: tuple[int, ...] = (1, 3),
    high: int = 1000,
    metadata: Metadata | None = None,
) -> Program:
    """y = x + x for x in -high..high; not provable if high is beyond 2^30 - 1."""
    x = Input("x", TensorType("i32", shape), -high, high)
    return Program(
        (x,), (), (Instruction("add", (0, 0)),), (Output("y", 1),), metadata
    )


def chain(metadata: Metadata | None = None) -> Program:
    """%1 = x + x, %2 = clamp(%1, -5..5) and y; %3 = argmax of %2 and best."""
    steps = (
        Instruction("add", (0, 0)),
        Instruction("clamp", (1,), {"min": -5, "max": 5}),
        Instruction("argmax", (2,), {"axis": 1}),
    )
    x = Input("x", TensorType("i32", (1, 3)), -1000, 1000)
    return Program(
        (x,), (), steps, (Output("y", 2), Output("best", 3)), metadata
    )


def pair() -> Program:
    """total = a + b broadcast: a i32[1,2] in 0..9, b i32[2,2] in -3..300."""
    a = Input("a", TensorType("i32", (1, 2)), 0, 9)
    b = Input("b", TensorType("i32", (2, 2)), -3, 300)
    return Program(
        (a, b), (), (Instruction("add", (0, 1)),), (Output("total", 2),)
    )


def save(program: Program, folder: Path, name: str = "p.cvm") -> str:
    """Write the program and return its path."""
    file_format.write(program, folder / name)
    return str(folder / name)


def save_array(
    values: object, folder: Path, name: str = "x.npy", dtype: str = "i4"
) -> str:
    """Write the `.npy` and return its path."""
    np.save(folder / name, np.asarray(values, dtype))
    return str(folder / name)
