"""Averages: layers whose weights are all equal, with nothing to fit and nothing to round."""

import tracemalloc

import numpy as np
import onnx_ir as ir
import pytest

from mrt.calibrate.collect import calibrate
from mrt.calibrate.samples import synthetic_samples
from mrt.quantize import LayerBits, QuantizeOptions
from mrt.refine import RefineOptions
from mrt.table.table import CalibrationOptions, CalibrationTable
from tests.support.float_models import FloatModel
from tests.support.refining import refine

ALL = RefineOptions.of(["fit", "weights", "biases"])
LARGE = (1, 320, 33, 33)
LIMIT = "mrt.refine.stages.stage.MOST_COVARIANCE"
MOST = 200 * 2**20
"""The most bytes that refining may take: the covariances alone would be 3 GB, three times."""


def refined(
    model: FloatModel,
    options: QuantizeOptions,
    samples: int,
    notes: list[str] | None = None,
) -> CalibrationTable:
    graph = ir.from_proto(model.proto("y"))
    data = synthetic_samples(model.inputs, samples)
    table = calibrate(graph, data, CalibrationOptions(), model_sha256="0" * 64)
    return refine(graph, table, options, ALL, data, notes)


def test_the_average_of_a_large_window_is_refined_in_little_memory():
    """A pool of 33 x 33 as `rewrite` writes it: a convolution with equal weights."""
    channels, model = LARGE[1], FloatModel(x=LARGE)
    mean = np.full((channels, 1, 33, 33), 1 / 33**2)
    model.conv("x", mean, np.zeros(channels), name="y", group=channels)
    tracemalloc.start()
    try:
        table = refined(model, QuantizeOptions(), 4)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert list(table.decisions.layers) == ["y"]
    assert peak < MOST


def test_an_average_keeps_equal_weights():
    """Eight channels of 3 bits hold what two would: other weights than a mean's would fit better."""
    rng = np.random.default_rng(7)
    model = FloatModel(x=(1, 2, 12, 12))
    model.conv("x", rng.normal(size=(8, 2, 1, 1)), np.zeros(8), name="many")
    model.conv("many", np.full((1, 8, 1, 1), 1 / 8), np.zeros(1), name="y")
    options = QuantizeOptions(layers={"many": LayerBits(activation_bits=3)})
    decisions = refined(model, options, 20).decisions.layers
    assert np.all(decisions["y"].weights == 127)
    assert len(np.unique(decisions["many"].weights)) > 8


def test_a_covariance_that_takes_too_much_memory_is_left_out_and_noted(
    monkeypatch: pytest.MonkeyPatch,
):
    """Two groups of four weights: 2 x 4 x 4 numbers of 8 bytes."""
    rng = np.random.default_rng(7)
    model = FloatModel(x=(1, 2, 6, 6))
    weights = rng.normal(size=(2, 1, 2, 2))
    model.conv("x", weights, np.zeros(2), name="y", group=2)
    notes: list[str] = []
    monkeypatch.setattr(LIMIT, 256)
    refined(model, QuantizeOptions(), 20, notes)
    assert notes == []
    monkeypatch.setattr(LIMIT, 255)
    refined(model, QuantizeOptions(), 20, notes)
    assert notes == [
        f"layer 'y' goes without the refining stage '{stage}': its covariance would "
        "take 256 bytes, more than 255"
        for stage in ("fit", "weights")
    ]
