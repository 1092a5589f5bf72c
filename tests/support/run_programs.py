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


def decoder(
    *,
    states: bool = True,
    high: int = 3,
    extra: str | None = None,
    within: tuple[int, int] = (0, 5),
    places: int = 1,
) -> Program:
    """present = min(past + token, 3); logits = a row for each number of it, where row 1 has a tie of 0 and 2.

    Greedily, 0 is followed by 1, 1 by 0 (the lower of the tie), 2 by 2, 3 by 3. An `extra` input changes nothing.
    """
    one = TensorType("i32", (1, 1))
    inputs = [Input("token", one, 0, 3), Input("past", one, 0, high)]
    rows = [[0, 5, 0, 0], [7, 0, 7, 0], [0, 0, 1, 0], [1, 2, 3, 9]]
    steps = [Instruction("add", (0, 1))]
    first = 3  # the number of the first instruction's value
    if extra is not None:
        inputs.append(Input(extra, TensorType("i32", (1, places)), *within))
        steps += [
            Instruction("sub", (2, 2)),
            Instruction("reduce_sum", (5,), {"axis": 1}),
            Instruction("add", (4, 6)),
        ]
        first = 7
    steps += [
        Instruction("clamp", (first,), {"min": 0, "max": 3}),
        Instruction("gather", (len(inputs), first + 1)),
    ]
    meanings = {"past": Meaning(0.5, 0)}, {"present": Meaning(0.5, 0)}
    provenance = {"state:past": "present"} if states else {}
    return Program(
        tuple(inputs),
        (np.array([rows], np.int8),),
        tuple(steps),
        (Output("logits", first + 2), Output("present", first + 1)),
        Metadata(*meanings, provenance=provenance),
    )
