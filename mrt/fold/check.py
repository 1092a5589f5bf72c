"""Compares a folded program with what it was made of, on random inputs."""

from __future__ import annotations

import numpy as np

from cvm.program import DTYPES, IntArray, Program
from cvm.proof.validate import Proven
from cvm.runtime.executable import Executable

SAMPLES = 4


def first_difference(before: Proven, after: Proven) -> str | None:
    """Return the first output that differs on a few random samples; None if none does."""
    samples = random_inputs(before.program, SAMPLES)
    expected, actual = (
        Executable.of(form).run(samples) for form in (before, after)
    )
    for name, array in expected.items():
        other = actual[name]
        if (array.dtype, array.shape) != (other.dtype, other.shape):
            return f"output {name!r} is {other.dtype}{other.shape}; expected {array.dtype}{array.shape}"
        places = np.argwhere(array != other)
        if len(places):
            place = tuple(map(int, places[0]))
            return f"output {name!r} at {place} is {other[place]}; expected {array[place]}"
    return None


def random_inputs(program: Program, count: int) -> dict[str, IntArray]:
    """Return `count` samples, the same ones each time: bounds of the intervals, and numbers between them."""
    random = np.random.RandomState(0)  # numpy never changes its numbers
    samples = {}
    for input_ in program.inputs:
        shape = (count, *input_.type.shape)
        inside = random.randint(input_.lo, input_.hi + 1, shape, np.int64)
        bounds = random.choice([input_.lo, input_.hi], shape)
        inside = np.where(random.randint(0, 4, shape) == 0, bounds, inside)
        samples[input_.name] = inside.astype(DTYPES[input_.type.dtype])
    return samples
