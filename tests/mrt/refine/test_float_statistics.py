"""How many samples are gone through layer by layer."""

import numpy as np
import onnx_ir as ir
import pytest

from mrt.calibrate.collect import calibrate
from mrt.calibrate.samples import synthetic_samples
from mrt.refine import RefineOptions
from mrt.refine.float_statistics import FloatStatistics
from mrt.table.table import CalibrationOptions
from tests.support.float_models import FloatModel


@pytest.mark.parametrize(
    ("rows", "bytes_of_a_sample"),
    [(80, 80 * 8 * 4 + 2 * 80 * 4), (1000, 100 * 8 * 4 + 2 * 1000 * 4)],
)
def test_as_many_samples_as_fit_into_memory_are_noted(
    rows: int, bytes_of_a_sample: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of each the outputs, of a matrix with many rows a hundred, and twice the inputs as bytes."""
    model = FloatModel(x=(rows, 4))
    model.add(
        "Gemm",
        "x",
        np.ones((8, 4), np.float32),
        np.zeros(8, np.float32),
        name="y",
        transB=1,
    )
    graph = ir.from_proto(model.proto("y"))
    samples = synthetic_samples(model.inputs, 20, 0)
    monkeypatch.setattr(
        "mrt.refine.float_statistics.MEMORY", 12 * bytes_of_a_sample + 7
    )
    statistics = FloatStatistics(graph, RefineOptions(), len(samples))
    calibrate(
        graph,
        samples,
        CalibrationOptions(),
        model_sha256="",
        callbacks=[statistics],
    )
    assert len(statistics.samples) == 12
    assert {array.shape for array in statistics.layers["y"]} == {
        (min(rows, 100), 8)
    }


@pytest.mark.parametrize(("most", "refined"), [(4, True), (3, False)])
def test_layers_with_too_many_weights_of_an_output_are_not_refined(
    most: int, refined: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mrt.refine.float_statistics.MAX_ROW", most)
    model = FloatModel(x=(2, 4))
    weights, bias = np.ones((8, 4), np.float32), np.zeros(8, np.float32)
    model.add("Gemm", "x", weights, bias, name="y", transB=1)
    graph = ir.from_proto(model.proto("y"))
    samples = synthetic_samples(model.inputs, 2, 0)
    statistics = FloatStatistics(graph, RefineOptions(), len(samples))
    calibrate(
        graph,
        samples,
        CalibrationOptions(),
        model_sha256="",
        callbacks=[statistics],
    )
    assert ("y" in statistics.layers) == refined
