"""Compares a folded program with what it was made of, on random inputs."""

from __future__ import annotations

import numpy as np

from cvm.program import DTYPES, IntArray, Program
from cvm.proof.validate import Proven
from cvm.runtime.executable import Executable

SAMPLES = 4


def first_difference(before: Proven, after: Proven) -> str | None:
    """The first output that differs on a few random samples; None if none does."""
    samples = random_inputs(before.program, SAMPLES)
    wanted, found = (
        Executable.of(form).run(samples) for form in (before, after)
    )
    for name, array in wanted.items():
        other = found[name]
        if (array.dtype, array.shape) != (other.dtype, other.shape):
            return f"output {name!r} is {other.dtype}{other.shape}; expected {array.dtype}{array.shape}"
        places = np.argwhere(array != other)
        if len(places):
            place = tuple(map(int, places[0]))
            return f"output {name!r} at {place} is {other[place]}; expected {array[place]}"
    return None


def random_inputs(program: Program, count: int) -> dict[str, IntArray]:
    """So many samples, the same ones each time, from the ends of the intervals and between."""
    random = np.random.RandomState(0)  # numpy never changes its numbers
    found = {}
    for item in program.inputs:
        shape = (count, *item.type.shape)
        inside = random.randint(item.lo, item.hi + 1, shape, np.int64)
        ends = random.choice([item.lo, item.hi], shape)
        inside = np.where(random.randint(0, 4, shape) == 0, ends, inside)
        found[item.name] = inside.astype(DTYPES[item.type.dtype])
    return found
