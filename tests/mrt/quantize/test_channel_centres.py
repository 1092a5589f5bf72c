"""Channels counted from centres of their own: the same reals, in fewer steps, without an instruction more."""

from dataclasses import replace

import numpy as np
import onnx_ir as ir
import pytest

from cvm.proof.validate import validate
from mrt.calibrate.collect import calibrate
from mrt.calibrate.samples import synthetic_samples
from mrt.errors import BadData
from mrt.evaluate import evaluate
from mrt.evaluate.layers import compare_layers
from mrt.quantize import LayerBits, QuantizeOptions, quantize
from mrt.quantize.channel_centres import centrable
from mrt.table.decisions import Decisions
from mrt.table.table import CalibrationOptions
from tests.support.float_models import FloatModel

FAR = np.array([40.0, -25.0, 60.0, 0.0])  # where the channels of a stream lie
CENTRES = {
    "stream": tuple(FAR),
    "sum": tuple(1.5 * FAR),
}  # of the network as it is by default


def network(
    operator: str = "Add", turned: bool = False, groups: int = 1
) -> FloatModel:
    """A stream of channels that lie far apart, to which a branch adds; all is read by convolutions without padding."""
    rng = np.random.default_rng(7)
    model = FloatModel(x=(1, 3, 8, 8))
    model.conv(
        "x",
        rng.normal(size=(4, 3, 3, 3)) * 0.3,
        FAR,
        pads=(1, 1, 1, 1),
        name="stream",
    )
    y = model.conv("stream", rng.normal(size=(6, 4, 1, 1)), rng.normal(size=6))
    y = model.conv(
        model.add("Relu", y),
        rng.normal(size=(4, 6, 3, 3)) * 0.002,
        FAR / 2,
        pads=(1, 1, 1, 1),
        name="branch",
    )
    model.add(
        operator, *((y, "stream") if turned else ("stream", y)), name="sum"
    )
    model.conv(
        "sum",
        rng.normal(size=(4, 4 // groups, 2, 2)),
        rng.normal(size=4),
        group=groups,
        name="out",
    )
    return model


def compared(
    model: FloatModel,
    centres: dict[str, tuple[float, ...]],
    options: QuantizeOptions | None = None,
):
    """Signal to noise of the outputs, that of each value, and how many instructions there are."""
    graph = ir.from_proto(model.proto("out"))
    samples = synthetic_samples(model.inputs, 20, 0)
    table = calibrate(
        graph, samples, CalibrationOptions("minmax"), model_sha256="0" * 64
    )
    relative = {
        name: (0.2,) * len(numbers)
        for name, numbers in centres.items()
        if max(map(abs, numbers)) > 10
    }
    table = replace(
        table, decisions=Decisions(centres=centres, channel_scales=relative)
    )
    program = validate(quantize(graph, table, options or QuantizeOptions()))
    layers = {
        layer.source: layer.snr_db
        for layer in compare_layers(graph, program, samples)
    }
    return (
        evaluate(graph, program, samples).to_json()["snr_db"],
        layers,
        len(program.program.instructions),
    )


@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("operator", ["Add", "Sub"])
def test_values_far_from_0_lose_less_and_say_what_they_stand_for(
    operator, turned, groups
):
    model = network(operator, turned, groups)
    share = 1.5 if operator == "Add" else -0.5 if turned else 0.5
    plain = compared(model, {})
    centred = compared(model, CENTRES | {"sum": tuple(share * FAR)})
    assert centred[0] > plain[0] + 6
    for name in ("stream", "sum"):
        assert centred[1][name] > plain[1][name] + 10
    assert centred[2] <= plain[2]


@pytest.mark.parametrize("name", ["stream", "sum"])
def test_one_of_them_alone_has_centres(name):
    plain = compared(network(), {})
    centred = compared(network(), {name: CENTRES[name]})
    assert centred[1][name] > plain[1][name] + 4
    assert centred[0] > plain[0]


def test_a_sum_of_two_values_with_centres_has_the_sum_of_theirs():
    rng = np.random.default_rng(8)
    model = FloatModel(x=(1, 3, 8, 8))
    for name in ("one", "two"):
        model.conv("x", rng.normal(size=(4, 3, 1, 1)) * 0.3, FAR, name=name)
    model.add("Sub", "one", "two", name="sum")
    y = model.conv("sum", rng.normal(size=(4, 4, 1, 1)), np.zeros(4))
    for name in ("one", "two"):
        y = model.add(
            "Add",
            y,
            model.conv(name, rng.normal(size=(4, 4, 1, 1)), np.zeros(4)),
        )
    model.conv(y, rng.normal(size=(4, 4, 1, 1)), np.zeros(4), name="out")
    centres = {"one": tuple(FAR), "two": tuple(FAR + 1), "sum": (-1.0,) * 4}
    plain, centred = compared(model, {}), compared(model, centres)
    assert centred[0] > plain[0] + 2
    assert centred[1]["sum"] > plain[1]["sum"] + 4


def test_values_of_16_bits_and_scales_that_are_powers_of_two_keep_the_same_reals():
    fine = QuantizeOptions(
        layers={
            "stream": LayerBits(activation_bits=16),
            "sum": LayerBits(activation_bits=16),
        }
    )
    assert compared(network(), CENTRES, fine)[0] > 40
    shift = QuantizeOptions(scales="shift")
    assert (
        compared(network(), CENTRES, shift)[0]
        > compared(network(), {}, shift)[0] + 10
    )


def test_only_convolutions_without_padding_may_read_them():
    assert centrable(ir.from_proto(network().proto("out")).graph) == {
        "stream",
        "branch",
        "sum",
    }
    rng = np.random.default_rng(9)
    model = FloatModel(x=(1, 3, 8, 8))
    for name in "abcdefg":
        model.conv("x", rng.normal(size=(3, 3, 1, 1)), np.zeros(3), name=name)
    model.conv(
        "a",
        rng.normal(size=(3, 3, 3, 3)),
        np.zeros(3),
        pads=(1, 1, 1, 1),
        name="padded",
    )
    model.add("Relu", model.add("Add", "b", "c", name="sum"), name="r")
    model.add("Add", "d", np.ones((1, 3, 1, 1), np.float32), name="constant")
    model.add("Sigmoid", "e", name="s")
    model.add("Max", "f", "g", name="m")
    outputs = ("padded", "r", "constant", "s", "m")
    assert centrable(ir.from_proto(model.proto(*outputs)).graph) == set()


@pytest.mark.parametrize(
    "centres", [{"stream": (1.0, 2.0)}, {"out": (1.0,) * 4}]
)
def test_a_table_with_centres_that_cannot_be_is_refused(centres):
    with pytest.raises(BadData, match="centres for '"):
        compared(network(), centres)
