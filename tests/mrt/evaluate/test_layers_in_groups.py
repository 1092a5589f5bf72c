"""Layers are compared in groups of which memory holds the values: the figures are the same."""

import numpy as np
import pytest

from cvm.proof.validate import validate
from mrt.calibrate.samples import synthetic_samples
from mrt.calibrate.session import FloatSession
from mrt.evaluate import layers as layers_file
from mrt.evaluate.layers import compare_layers
from mrt.evaluate.local_noise import local_noise
from mrt.quantize import QuantizeOptions, quantize
from tests.support.float_models import FloatModel, calibrated

SHAPE = (1, 4, 6, 6)
BYTES = 4 * 4 * 6 * 6  # of a value


@pytest.fixture(scope="module")
def converted():
    """Four convolutions and sums in a row, each of which also reads the value before the last."""
    rng = np.random.default_rng(0)
    m = FloatModel(x=SHAPE)
    last, before = "x", "x"
    for _ in range(4):
        product = m.conv(last, rng.normal(0, 0.5, (4, 4, 1, 1)), np.zeros(4))
        last, before = m.add("Add", product, before), last
    model, table = calibrated(m.proto(last), {"x": SHAPE})
    samples = synthetic_samples({"x": SHAPE}, 6, 0)
    program = validate(quantize(model, table, QuantizeOptions()))
    return model, program, samples


def figures(converted):
    model, program, samples = converted
    layers = compare_layers(model, program, samples)
    local = local_noise(model, program, samples, layers)
    return [
        (layer.source, layer.noise, layer.clipped, local[layer.number])
        for layer in layers
    ]


@pytest.mark.parametrize("values", [1, 2, 3])
def test_figures_do_not_depend_on_the_groups(values, converted, monkeypatch):
    whole = figures(converted)
    assert len(whole) > 3
    assert all(local.noise > 0 for *_, local in whole)
    monkeypatch.setattr(layers_file, "MOST_BYTES", values * BYTES)
    assert figures(converted) == whole


def test_no_run_exposes_more_than_a_group(converted, monkeypatch):
    exposed, run = [], FloatSession.run

    def watched(self, *arguments, **options):
        values = run(self, *arguments, **options)
        exposed.append(sum(array.nbytes for array in values.values()))
        return values

    monkeypatch.setattr(FloatSession, "run", watched)
    monkeypatch.setattr(layers_file, "MOST_BYTES", 2 * BYTES)
    model, program, samples = converted
    compare_layers(model, program, samples)
    assert max(exposed) == 2 * BYTES


def test_an_output_that_layers_read_too_is_a_layer_of_its_own():
    """A language model's last hidden values are one, behind which its pooled ones come."""
    rng = np.random.default_rng(1)
    m = FloatModel(x=SHAPE)
    inner = m.conv("x", rng.normal(0, 0.5, (4, 4, 1, 1)), np.zeros(4))
    last = m.conv(inner, rng.normal(0, 0.5, (4, 4, 1, 1)), np.zeros(4))
    model, table = calibrated(m.proto(inner, last), {"x": SHAPE})
    samples = synthetic_samples({"x": SHAPE}, 3, 0)
    program = validate(quantize(model, table, QuantizeOptions()))
    found = figures((model, program, samples))
    assert {source for source, *_ in found} == {inner, last}
    assert all(local.noise > 0 for *_, local in found)
