"""What a converted program answers to samples, and what the float model does."""

from __future__ import annotations

import numpy as np

from tests.support.graphs import run


def answers(converted, feeds):
    """Return the reals of output y for all samples."""
    program = converted.program
    return program.dequantize(program.run(program.quantize(feeds)))["y"]


def expected(proto, feeds):
    """Return output y of the float model, which takes one sample at a time."""
    (count,) = {len(rows) for rows in feeds.values()}
    rows = [
        run(proto, {name: rows[place : place + 1] for name, rows in feeds.items()})["y"]
        for place in range(count)
    ]  # fmt: skip
    return np.concatenate(rows)
