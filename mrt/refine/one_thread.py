"""Products of matrices on one thread: their sums are then added in one order, however many processors there are.

Small products gain by it besides: handing a part of one to another thread takes longer than the product.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec

_NUMPY = "numpy._core._multiarray_umath"  # the part of numpy that is linked with its BLAS
_OPENBLAS = ("scipy_openblas_{}_num_threads64_", "openblas_{}_num_threads64_", "openblas_{}_num_threads")


@contextmanager
def one_thread() -> Iterator[None]:
    """While it lasts, numpy's OpenBLAS has one thread; of another BLAS, its own settings decide (as OMP_NUM_THREADS)."""
    found = openblas()
    if found is None:
        yield
        return
    library, name = found
    before = library[name.format("get")]()
    library[name.format("set")](1)
    try:
        yield
    finally:
        library[name.format("set")](before)


def openblas() -> tuple[ctypes.CDLL, str] | None:
    """The library that numpy multiplies with, if it is OpenBLAS, and how the names of its settings are spelled."""
    spec = find_spec(_NUMPY)
    if spec is None or spec.origin is None:
        return None
    library = ctypes.CDLL(spec.origin)
    return next(((library, name) for name in _OPENBLAS if hasattr(library, name.format("set"))), None)
