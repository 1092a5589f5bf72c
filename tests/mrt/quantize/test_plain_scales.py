"""What each output's own scale of weights, and the unsigned range, are exchanged for where they are not wanted."""

import numpy as np
import pytest

from mrt.calibrate.samples import synthetic_samples
from mrt.calibrate.session import FloatSession
from mrt.quantize import QuantizeOptions, quantize
from mrt.refine import RefineOptions
from tests.support.float_models import FloatModel, calibrated, run_real
from tests.support.refining import refine

STAGES = ("scales", "centres", "fit", "weights", "biases")


@pytest.mark.parametrize("stages", [(), STAGES])
def test_weights_with_one_scale_and_values_that_are_signed_mean_the_same(
    stages,
):
    """Outputs of 100 and of 1 share a scale: the small ones have few steps. What a Relu gives begins at 0 all the same."""
    rng = np.random.default_rng(8)
    model = FloatModel(x=(1, 3, 6, 6))
    loudness = np.array([100.0, 1.0])[:, None, None, None]
    y = model.conv("x", rng.normal(size=(2, 3, 1, 1)) * loudness, np.zeros(2))
    model.add("Relu", y, name="first")
    model.conv("first", rng.normal(size=(2, 2, 1, 1)), np.zeros(2), name="out")
    graph, table = calibrated(model.proto("out"), model.inputs)
    samples = synthetic_samples(model.inputs, 20, 0)
    found = {}
    for words in ({}, {"per_channel": False}, {"unsigned": False}):
        options = QuantizeOptions(**words)
        program = quantize(
            graph,
            refine(graph, table, options, RefineOptions.of(stages), samples),
            options,
        )
        weights = next(
            array for array in program.constants if array.dtype == np.int8
        )
        meaning = next(
            item
            for item in program.metadata.values.values()
            if item.source == "first"
        )
        found[next(iter(words), "")] = (
            np.abs(weights).max(axis=(1, 2, 3)).tolist(),
            meaning.zero_point,
        )
        for sample in samples:
            real = FloatSession(graph).run(sample)["out"]
            assert (
                np.abs(run_real(program, sample)["out"] - real).max()
                < 0.1 * np.abs(real).max()
            )
    assert found[""][1] == found["per_channel"][1] == -128
    assert found["unsigned"][1] == 0
    assert min(found[""][0]) > 100
    assert sorted(found["per_channel"][0])[0] < 10
