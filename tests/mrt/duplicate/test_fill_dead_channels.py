"""Duplicates in the places of dead channels: float stays, integers gain; and where not."""

from dataclasses import replace

import numpy as np
import onnx_ir as ir
import pytest

from cvm.proof.validate import validate
from mrt.calibrate.collect import calibrate
from mrt.calibrate.samples import synthetic_samples
from mrt.calibrate.session import FloatSession
from mrt.duplicate.fill_dead_channels import fill_dead_channels
from mrt.errors import BadModel
from mrt.evaluate import evaluate
from mrt.graph.notes import duplicates_of, set_duplicates
from mrt.quantize import LayerBits, QuantizeOptions, quantize
from mrt.table.table import CalibrationOptions
from tests.support.float_models import FloatModel

DEAD = [1, 4]
FINE = LayerBits(activation_bits=16)
ONLY_BETWEEN = QuantizeOptions(
    weight_bits=15, layers={"x": FINE, "held": FINE}
)  # what has 8 bits lies between layers


def network(
    depthwise: bool = True,
    pads: int = 0,
    constant: float = 0.0,
    limit: float = 6.0,
) -> FloatModel:
    """Six channels, of which two never rise above 0 behind a clip.

    Behind one of these a depthwise bias may add a constant.
    """
    rng = np.random.default_rng(3)
    weights = rng.normal(size=(6, 3, 1, 1))
    bias = np.abs(rng.normal(size=6)) + 1
    weights[DEAD], bias[DEAD] = 0, -1
    model = FloatModel(x=(1, 3, 10, 10))
    y = model.add("Clip", "x", np.float32(-1), np.float32(1), name="held")
    y = model.add(
        "Clip",
        model.conv(y, weights, bias),
        np.float32(0),
        np.float32(limit),
        name="first",
    )
    if depthwise:
        bias = rng.normal(size=6)
        bias[DEAD] = -1, constant
        y = model.conv(
            y, rng.normal(size=(6, 1, 3, 3)), bias, pads=(1,) * 4, group=6
        )
        y = model.add(
            "Clip", y, np.float32(0), np.float32(limit), name="second"
        )
    model.conv(
        y,
        rng.normal(size=(4, 6, 3, 3)),
        rng.normal(size=4),
        pads=(pads,) * 4,
        name="out",
    )
    return model


def filled(model: FloatModel) -> tuple[ir.Model, int]:
    graph = ir.from_proto(model.proto("out"))
    return graph, fill_dead_channels(graph)


def pairs_of(graph: ir.Model, name: str) -> tuple[tuple[int, int], ...]:
    return next(
        duplicates_of(value)
        for node in graph.graph
        for value in node.outputs
        if value.name == name
    )


@pytest.mark.parametrize("depthwise", [False, True])
@pytest.mark.parametrize("constant", [0.0, 0.7])
def test_duplicates_leave_the_float_model_as_it_is(depthwise, constant):
    model = network(depthwise, constant=constant)
    graph, count = filled(model)
    assert count == 2
    plain = FloatSession(ir.from_proto(model.proto("out")), ["out"])
    twice = FloatSession(graph, ["out", "first"])
    places = [place for place, _ in pairs_of(graph, "first")]
    assert places == DEAD
    for sample in synthetic_samples(model.inputs, 3, 0):
        real, same = plain.run(sample)["out"], twice.run(sample)
        assert np.allclose(same["out"], real, atol=1e-5)
        for one, other in pairs_of(graph, "first"):
            assert other not in DEAD and np.array_equal(
                same["first"][:, one], same["first"][:, other]
            )


def snr(
    graph: ir.Model, model: FloatModel, options: QuantizeOptions | None = None
) -> float:
    samples = synthetic_samples(model.inputs, 30, 1)
    table = calibrate(
        graph, samples, CalibrationOptions("minmax"), model_sha256="0" * 64
    )
    program = validate(quantize(graph, table, options or ONLY_BETWEEN))
    return evaluate(
        ir.from_proto(model.proto("out")), program, samples
    ).to_json()["snr_db"]


@pytest.mark.parametrize(("depthwise", "gain"), [(False, 1.0), (True, 0.4)])
def test_two_of_four_channels_with_duplicates_take_off_some_noise(
    depthwise, gain
):
    """Half of the channels have a quarter of the noise: 2 dB, if all were equally noisy."""
    model = network(depthwise)
    assert (
        snr(filled(model)[0], model)
        > snr(ir.from_proto(model.proto("out")), model) + gain
    )


def test_duplicates_that_are_rounded_alike_would_gain_nothing(monkeypatch):
    model = network(depthwise=False)
    graph = filled(model)[0]
    apart = snr(graph, model)
    monkeypatch.setattr(
        "mrt.quantize.rules.linear.dither_offsets", lambda *_: np.zeros(1)
    )
    assert snr(graph, model) < apart - 1


def test_values_of_16_bits_are_not_nudged():
    model = network()
    fine = QuantizeOptions(weight_bits=15, activation_bits=16)
    assert snr(filled(model)[0], model, fine) > 70
    mixed = replace(ONLY_BETWEEN, layers={**ONLY_BETWEEN.layers, "first": FINE})
    assert (
        snr(filled(model)[0], model, mixed) > snr(filled(model)[0], model) + 0.5
    )


def test_what_a_reader_pads_must_be_0():
    assert filled(network(pads=1))[1] == 2
    graph, count = filled(network(pads=1, constant=0.7))
    assert (count, pairs_of(graph, "second")[0][0]) == (1, 1)


def test_nothing_is_done_where_nothing_is_certain_or_something_else_reads():
    unbounded = FloatModel(x=(1, 3, 4, 4))
    y = unbounded.add(
        "Relu", unbounded.conv("x", np.ones((2, 3, 1, 1)), [-1e6, 0])
    )
    unbounded.conv(y, np.ones((2, 2, 1, 1)), np.zeros(2), name="out")
    assert filled(unbounded)[1] == 0
    model = network(depthwise=False)
    for outputs, count in ((["out"], 2), (["out", "first"], 0)):
        assert fill_dead_channels(ir.from_proto(model.proto(*outputs))) == count
    model.add("Sigmoid", "first", name="other")
    assert fill_dead_channels(ir.from_proto(model.proto("out", "other"))) == 0


@pytest.mark.parametrize("lie", [((1, 6),), ((0, 1), (99, 2))])
def test_a_file_that_lies_about_duplicates_is_refused(lie):
    model = network(depthwise=False)
    graph = filled(model)[0]
    for node in graph.graph:
        for value in node.outputs:
            if duplicates_of(value):
                set_duplicates(value, lie)
    with pytest.raises(BadModel, match="expected pairs of its 6 channels"):
        snr(graph, model)


def test_a_note_of_a_file_on_what_is_no_clip_changes_nothing():
    model = FloatModel(x=(1, 3, 4, 4))
    random = np.random.default_rng(0)
    y = model.conv("x", random.normal(size=(4, 3, 1, 1)), np.zeros(4))
    model.add("Reshape", y, np.array([1, 64]), allowzero=0, name="out")
    plain, noted = (ir.from_proto(model.proto("out")) for _ in range(2))
    set_duplicates(noted.graph.outputs[0], ((0, 1),))
    options = QuantizeOptions()
    assert snr(noted, model, options) == snr(plain, model, options)
