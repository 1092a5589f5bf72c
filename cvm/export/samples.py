"""The inputs of a self-test: integers that are the same on every machine and reach over the whole interval."""

from __future__ import annotations

from io import BytesIO

import numpy as np

from cvm.program import DTYPES, Input, IntArray, Program

STEP = 0x9E3779B9  # between the first places of two inputs


def sample(port: Input, number: int) -> IntArray:
    """Integers inside the interval of an input, spread by a hash of their places."""
    x = np.arange(port.type.elements, dtype=np.uint32)
    x += np.uint32(number * STEP % 2**32)
    x = (x ^ (x >> np.uint32(16))) * np.uint32(0x7FEB352D)
    x = (x ^ (x >> np.uint32(15))) * np.uint32(0x846CA68B)
    x ^= x >> np.uint32(16)
    span = np.uint64(port.hi - port.lo + 1)
    above = (x.astype(np.uint64) * span) >> np.uint64(32)
    values = above.astype(np.int64) + port.lo
    return values.astype(DTYPES[port.type.dtype]).reshape(port.type.shape)


def samples_of(program: Program) -> dict[str, IntArray]:
    """A sample of each input, by its name."""
    return {
        port.name: sample(port, number)
        for number, port in enumerate(program.inputs)
    }


def stored(arrays: list[IntArray]) -> bytes:
    """An .npz file of the arrays in order: arr_0, arr_1, ..."""
    buffer = BytesIO()
    np.savez(buffer, *arrays)
    return buffer.getvalue()
