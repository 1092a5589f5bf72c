"""Constants of 4 bits: two elements in a byte of the file, i8 everywhere else. `cvm/SPEC.md`, section "File format"."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from cvm.errors import Malformed
from cvm.program import IntArray


def packed_size(elements: int) -> int:
    """The bytes of so many elements."""
    return (elements + 1) // 2


def packed(array: IntArray) -> npt.NDArray[np.uint8]:
    """The bytes of integers in -8..7, row-major: the first of two in the low bits, 0 beside a last one alone."""
    flat = np.zeros(2 * packed_size(array.size), np.int8)
    flat[: array.size] = array.reshape(-1)
    low, high = flat.view(np.uint8).reshape(-1, 2).T
    return (low & 15 | high << 4).astype(np.uint8)


def unpacked(view: memoryview, shape: tuple[int, ...], at: int) -> IntArray:
    """The i8 array of this shape whose bytes begin at `at`; Malformed if the last half of a byte has no element and is not 0."""
    count = int(np.prod(shape, dtype=np.int64))
    pairs = np.frombuffer(view, np.uint8, packed_size(count), at)
    if count % 2 and pairs[-1] > 15:
        raise Malformed(
            f"byte {at + len(pairs) - 1}: the half behind the last element of 4 bits is not zero"
        )
    signed = pairs.view(np.int8)
    flat = np.stack([signed << 4 >> 4, signed >> 4], axis=1).reshape(-1)
    flat.setflags(write=False)
    return flat[:count].reshape(shape)
