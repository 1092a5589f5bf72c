"""Copies of a channel are rounded at equal distances within a step, so that their mean is finer."""

import numpy as np
import onnx_ir as ir
import pytest

from cvm.proof.validate import validate
from mrt.calibrate.collect import calibrate
from mrt.calibrate.samples import synthetic_samples
from mrt.duplicate.add_duplicates import add_duplicates
from mrt.evaluate import evaluate
from mrt.quantize import LayerBits, QuantizeOptions, quantize
from mrt.table.table import CalibrationOptions
from tests.support.float_models import FloatModel

CHANNELS = 6
FINE = LayerBits(weight_bits=15, activation_bits=16)


def network(*, blocks: int = 0, projected: bool = False) -> FloatModel:
    """A value without a clip that a convolution reads, or to which blocks add before; or a sum of two convolutions."""
    rng = np.random.default_rng(3)
    model = FloatModel(x=(1, 4, 16, 16))

    def conv(x: str, outputs: int, inputs: int, name: str) -> str:
        weights = rng.normal(size=(outputs, inputs, 1, 1))
        return model.conv(x, weights, rng.normal(size=outputs), name=name)

    y = conv("x", CHANNELS, 4, "other" if projected else "start")
    if projected:
        beside = conv("x", CHANNELS, 4, "beside")
        y = model.add("Add", y, beside, name="start")
    for index in range(blocks):
        inner = model.add("Relu", conv(y, 8, CHANNELS, f"wide{index}"))
        y = model.add("Add", conv(inner, CHANNELS, 8, f"narrow{index}"), y)
    conv(y, 3, CHANNELS, "out")
    return model


def signal_to_noise(model: FloatModel, copies: int) -> float:
    """In decibels, with so many of each channel where nothing else is rounded to 8 bits."""
    proto = model.proto("out")
    graph = ir.from_proto(proto)
    samples = synthetic_samples(model.inputs, 20, 1)
    channels = [*range(CHANNELS)] * (copies - 1)
    add_duplicates(graph, {"start": channels} if channels else {})
    layers = {
        node.outputs[0].name: FINE
        for node in graph.graph
        if node.op_type in ("Conv", "Relu")
    }
    layers["x"] = FINE
    if "start" in layers:  # a projected one is a sum, which has no weights
        layers["start"] = LayerBits(weight_bits=15)
    options = QuantizeOptions(layers=layers)
    table = calibrate(
        graph, samples, CalibrationOptions("minmax"), model_sha256="0" * 64
    )
    program = validate(quantize(graph, table, options))
    found = evaluate(ir.from_proto(proto), program, samples).to_json()
    return float(found["snr_db"])


@pytest.mark.parametrize("projected", [False, True])
@pytest.mark.parametrize("copies", [2, 3, 4])
def test_a_value_without_a_clip_is_as_many_times_finer_as_it_has_copies(
    copies, projected
):
    model = network(projected=projected)
    gained = signal_to_noise(model, copies) - signal_to_noise(model, 1)
    assert gained == pytest.approx(20 * np.log10(copies), abs=0.5)


def test_sums_are_finer_too():
    """A sum of copies is rounded at equal distances again; without that hardly anything is gained."""
    model = network(blocks=2)
    gained = signal_to_noise(model, 2) - signal_to_noise(model, 1)
    assert gained > 4
