"""A table, and what is decided on it, are the same whoever counts and however many processors there are."""

import os

import numpy as np
import onnx_ir as ir
import pytest

from mrt import compiled
from mrt.calibrate import subsampling as subsampling
from mrt.calibrate.collect import calibrate
from mrt.calibrate.samples import synthetic_samples
from mrt.quantize import QuantizeOptions
from mrt.refine import STAGES, FloatStatistics, RefineOptions, refine
from mrt.table.table import CalibrationOptions
from tests.support.float_models import FloatModel


def network() -> FloatModel:
    """Values of both signs and of one, with few numbers to a channel and with many."""
    rng = np.random.default_rng(11)
    model = FloatModel(x=(1, 3, 40, 40))
    y = model.conv(
        "x",
        rng.normal(size=(4, 3, 3, 3)),
        rng.normal(size=4),
        pads=(1, 1, 1, 1),
    )
    y = model.conv(
        model.add("Relu", y),
        rng.normal(size=(8, 4, 3, 3)),
        rng.normal(size=8),
        strides=[4, 4],
    )
    y = model.conv(y, rng.normal(size=(6, 8, 1, 1)), rng.normal(size=6))
    model.conv(
        model.add("Sigmoid", y),
        rng.normal(size=(5, 6, 9, 9)),
        rng.normal(size=5),
        name="y",
    )
    return model


def table_and_layers(monkeypatch: pytest.MonkeyPatch) -> tuple[str, bytes]:
    monkeypatch.setattr(subsampling, "ENOUGH_OF_ALL_SAMPLES", 9 * 1000)
    monkeypatch.setattr(subsampling, "ENOUGH_OF_ONE_SAMPLE", 1000)
    model = network()
    stages = RefineOptions.of(STAGES)
    options = QuantizeOptions()
    graph = ir.from_proto(model.proto("y"))
    samples = synthetic_samples(model.inputs, 9)
    statistics = FloatStatistics(graph, stages, len(samples))
    table = calibrate(
        graph,
        samples,
        CalibrationOptions("mse"),
        model_sha256="0" * 64,
        callbacks=[statistics],
    )
    table = refine(graph, table, options, stages, statistics, lambda *_: None)
    assert table.decisions.channel_scales and table.decisions.layers
    return table.text(), table.decisions.encoded()


@pytest.mark.skipif(
    compiled.extension() is None, reason="the extension is not built here"
)
def test_the_extension_and_numpy_give_the_same_table(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    by_extension = table_and_layers(monkeypatch)
    monkeypatch.setattr(compiled, "extension", lambda: None)
    assert table_and_layers(monkeypatch) == by_extension


@pytest.mark.skipif(
    not hasattr(os, "sched_setaffinity"),
    reason="processors cannot be taken away here",
)
def test_one_processor_gives_the_table_of_all(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    every = os.sched_getaffinity(0)
    by_all = table_and_layers(monkeypatch)
    os.sched_setaffinity(
        0, {min(every)}
    )  # of this thread and of those that it starts
    try:
        assert table_and_layers(monkeypatch) == by_all
    finally:
        os.sched_setaffinity(0, every)
