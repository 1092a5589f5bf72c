"""one_thread: numpy's products have one thread while it lasts, and as many as before afterwards."""

import numpy as np

from mrt.refine.one_thread import one_thread, openblas


def threads() -> int | None:
    """How many numpy's OpenBLAS has; None of another BLAS."""
    found = openblas()
    return None if found is None else int(found[0][found[1].format("get")]())


def test_products_have_one_thread_and_then_as_many_as_before() -> None:
    before = threads()
    with one_thread():
        assert threads() in (1, None)
        with one_thread():
            assert threads() in (1, None)
        assert threads() in (1, None)
    assert threads() == before


def test_the_threads_come_back_after_a_failure() -> None:
    before = threads()
    try:
        with one_thread():
            np.linalg.inv(np.zeros((2, 2)))
    except np.linalg.LinAlgError:
        pass
    assert threads() == before


def test_numpy_of_a_wheel_has_anopenblas_that_is_found() -> None:
    if "openblas" in str(np.show_config(mode="dicts")).lower():
        assert threads() is not None
