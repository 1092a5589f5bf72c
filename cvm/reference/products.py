"""The integer matrix product under every linear instruction, in 32 bits where the data at hand cannot overflow them."""

from __future__ import annotations

from typing import Any

import numpy as np

from cvm.program import IntArray

INT32_LIMIT = 2**31 - 1


def accumulator_for(x: IntArray, w: IntArray, b: IntArray) -> np.dtype[Any]:
    """int32 if no sum of products of these x and rows of w, plus b, can leave it in any order of adding; else int64."""
    weights = int(
        np.abs(w.astype(np.int32))
        .sum(axis=tuple(range(1, w.ndim)), dtype=np.int64)
        .max()
    )
    reach = int(np.abs(x).max()) * weights + int(
        np.abs(b.astype(np.int64)).max()
    )
    return np.dtype(np.int32 if reach <= INT32_LIMIT else np.int64)


def products(rows: IntArray, columns: IntArray) -> IntArray:
    """rows[M,K] times the transpose of columns[N,K], both contiguous; einsum is faster than `@` for integers."""
    result: IntArray = np.einsum("mk,nk->mn", rows, columns)
    return result
