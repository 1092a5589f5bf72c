"""Scales of channels where convolutions read a value only behind a Concat or a pool."""

import numpy as np
import onnx_ir as ir
import pytest

from cvm.proof.validate import validate
from mrt.calibrate.collect import calibrate
from mrt.calibrate.samples import synthetic_samples
from mrt.evaluate import evaluate
from mrt.evaluate.layers import compare_layers
from mrt.quantize import QuantizeOptions, quantize
from mrt.quantize.channel_scales import candidates
from mrt.refine import RefineOptions
from mrt.table.table import CalibrationOptions
from tests.support.float_models import FloatModel
from tests.support.refining import refine

WINDOW = {"kernel_shape": [2, 2], "strides": [2, 2], "pads": [0, 0, 0, 0]}


def fire(
    pool: str = "MaxPool",
    *,
    clip: bool = False,
    twice: bool = False,
    outputs: str = "out",
) -> ir.Model:
    """Two convolutions whose channels differ in size, joined and pooled.

    A third one reads them and makes the channels equal again.
    """
    rng, model = np.random.default_rng(3), FloatModel(x=(1, 3, 12, 12))
    sizes, parts = 0.5 ** np.arange(8), []
    for name, some in (("left", sizes[:3]), ("right", sizes[3:])):
        weights = (
            rng.normal(size=(len(some), 3, 1, 1)) * some[:, None, None, None]
        )
        y = model.conv("x", weights, rng.normal(size=len(some)) * some)
        parts.append(model.add("Relu", y, name=name))
    if clip:
        ends = np.float32(0), np.float32(0.1)
        parts[1] = model.add("Clip", parts[1], *ends, name="clipped")
    if twice:
        model.conv(
            "left",
            rng.normal(size=(1, 3, 1, 1)),
            rng.normal(size=1),
            name="other",
        )
    y = model.add("Concat", *parts, name="joined", axis=1)
    y = model.add(pool, y, name="pooled", **WINDOW)
    model.conv(
        y,
        rng.normal(size=(4, 8, 1, 1)) / sizes[:, None, None],
        rng.normal(size=4),
        name="out",
    )
    return ir.from_proto(model.proto(*outputs.split()))


def measured(graph: ir.Model, *stages: str, scales: str = "real") -> float:
    """The signal-to-noise ratio, in dB, of a program on other samples than it was refined on."""
    options, inputs = QuantizeOptions(scales=scales), {"x": (1, 3, 12, 12)}
    samples, others = (synthetic_samples(inputs, 40, seed) for seed in (0, 1))
    table = calibrate(
        graph, samples, CalibrationOptions(), model_sha256="0" * 64
    )
    table = refine(graph, table, options, RefineOptions.of(stages), samples)
    return float(
        evaluate(
            graph, validate(quantize(graph, table, options)), others
        ).to_json()["snr_db"]
    )


@pytest.mark.parametrize("pool", ["MaxPool", "AveragePool"])
@pytest.mark.parametrize("scales", ["real", "shift"])
def test_channels_that_differ_in_size_gain_scales_of_their_own_through_concat_and_pools(
    pool, scales
):
    assert (
        measured(fire(pool), "scales", scales=scales)
        > measured(fire(pool), scales=scales) + 6
    )


def test_parts_that_a_clip_stops_before_their_scales_end_are_joined_at_one_scale():
    assert measured(fire(clip=True), "scales") == measured(fire(clip=True))


def test_the_scales_are_those_of_the_value_that_is_rounded():
    assert [value.name for value in candidates(fire())] == ["joined"]


def test_what_somebody_else_needs_in_one_scale_is_no_candidate():
    assert not candidates(fire(outputs="out pooled"))
    joined = {
        value.name
        for value in candidates(fire(twice=True, outputs="out other"))
    } & {"joined"}
    assert not joined, "one of its parts was rounded for another reader"


def test_values_behind_concat_and_pools_are_compared_with_their_float_duplicates():
    graph, samples = fire(), synthetic_samples({"x": (1, 3, 12, 12)}, 20, 0)
    table = calibrate(
        graph, samples, CalibrationOptions(), model_sha256="0" * 64
    )
    options = QuantizeOptions()
    table = refine(graph, table, options, RefineOptions.of(["scales"]), samples)
    program = validate(quantize(graph, table, options))
    layers = {
        layer.source: layer.snr_db
        for layer in compare_layers(graph, program, samples)
    }
    assert {"joined", "pooled"} <= layers.keys()
    assert min(layers.values()) > 25
