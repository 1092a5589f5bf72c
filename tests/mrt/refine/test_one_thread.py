"""one_thread: numpy's products have one thread while it lasts, and as many as before afterwards."""

import numpy as np
import onnx_ir as ir

from mrt.calibrate.collect import calibrate
from mrt.calibrate.samples import synthetic_samples
from mrt.calibrate.table import CalibrationOptions
from mrt.quantize import QuantizeOptions
from mrt.refine import FloatNotes, RefineOptions, refine
from mrt.refine.one_thread import one_thread, openblas
from tests.float_models import FloatModel


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


def test_refining_has_one_thread() -> None:
    model = FloatModel(x=(1, 3, 6, 6))
    model.conv("x", np.ones((2, 3, 1, 1)), np.zeros(2), name="out")
    graph, samples = ir.from_proto(model.proto("out")), synthetic_samples(model.inputs, 5)
    stages, found = RefineOptions(), []
    notes = FloatNotes(graph, stages, 5)
    table = calibrate(graph, samples, CalibrationOptions(), model_sha256="", onlookers=[notes])
    refine(graph, table, QuantizeOptions(), stages, notes, lambda *_: found.append(threads()))
    assert found in ([1], [None])
