"""Scales of channels in a table that does not belong to the model."""

from dataclasses import replace

import numpy as np
import onnx_ir as ir
import pytest

from mrt.calibrate.collect import calibrate
from mrt.calibrate.samples import synthetic_samples
from mrt.errors import BadData
from mrt.graph.notes import set_shared_range
from mrt.quantize import QuantizeOptions, quantize
from mrt.table.decisions import Decisions
from mrt.table.table import CalibrationOptions, MeasuredRange
from tests.support.float_models import FloatModel


def quantized(
    scales: dict[str, tuple[float, ...]], *outputs: str, shared: bool = False
) -> None:
    """Two convolutions with a pool between them, by a table with these scales of channels; or as much as outputs need."""
    rng, model = np.random.default_rng(4), FloatModel(x=(1, 3, 8, 8))
    model.conv(
        "x", rng.normal(size=(4, 3, 1, 1)), rng.normal(size=4), name="first"
    )
    model.add(
        "MaxPool",
        "first",
        name="pooled",
        kernel_shape=[2, 2],
        strides=[2, 2],
        pads=[0, 0, 0, 0],
    )
    if "last" in outputs:
        model.conv(
            "pooled",
            rng.normal(size=(2, 4, 1, 1)),
            rng.normal(size=2),
            name="last",
        )
    graph = ir.from_proto(model.proto(*outputs))
    samples = synthetic_samples(model.inputs, 4, 0)
    if shared:
        set_shared_range(next(iter(graph.graph)).outputs[0], "first")
    table = calibrate(
        graph, samples, CalibrationOptions("minmax"), model_sha256="0" * 64
    )
    quantize(
        graph,
        replace(table, decisions=Decisions(channel_scales=scales)),
        QuantizeOptions(),
    )


@pytest.mark.parametrize(
    ("name", "count", "outputs"),
    [
        ("first", 3, ["last"]),
        ("first", 1, ["last"]),
        ("x", 3, ["last"]),
        ("pooled", 4, ["last"]),
        ("first", 4, ["pooled"]),
        ("pooled", 4, ["last", "pooled"]),
        ("first", 4, ["last", "first"]),
    ],
)
def test_a_table_with_scales_of_channels_that_cannot_be_is_refused(
    name: str, count: int, outputs: list[str]
) -> None:
    sentence = f"the calibration table has {count} scales of channels for '{name}', which can have none or another number"
    with pytest.raises(BadData, match=sentence):
        quantized({name: (0.5,) * count}, *outputs)


def test_scales_of_channels_of_what_is_not_there_or_not_read_are_passed_over() -> (
    None
):
    quantized(
        {"first": (0.5,) * 4, "last": (0.5,) * 2, "elsewhere": (0.5,)}, "last"
    )


@pytest.mark.parametrize(
    ("scales", "factors", "ends"),
    [
        ("real", (0.5, 2.5), (1.95, 6.0)),
        ("shift", (0.4, 1.5), (255 / 128, 255 / 64)),
    ],
)
@pytest.mark.parametrize("joined", [False, True])
def test_no_channel_reaches_beyond_the_clip(
    scales: str,
    factors: tuple[float, ...],
    ends: tuple[float, ...],
    joined: bool,
) -> None:
    """A value cut off at 6 that has steps up to 3.9, of powers of two up to 255 / 64; a channel's may end further out."""
    rng, model = np.random.default_rng(4), FloatModel(x=(1, 3, 8, 8))
    for name in ("left", "right"):
        model.conv(
            "x", 9 * rng.normal(size=(1, 3, 1, 1)), np.zeros(1), name=name
        )
        model.add(
            "Clip", name, np.float32(0), np.float32(6), name=f"{name} clipped"
        )
    if joined:
        value = model.add(
            "Concat", "left clipped", "right clipped", name="value", axis=1
        )
    else:
        model.conv(
            "x", 9 * rng.normal(size=(2, 3, 1, 1)), np.zeros(2), name="both"
        )
        value = model.add(
            "Clip", "both", np.float32(0), np.float32(6), name="value"
        )
    model.conv(value, rng.normal(size=(2, 2, 1, 1)), np.zeros(2), name="last")
    graph = ir.from_proto(model.proto("last"))
    samples = synthetic_samples(model.inputs, 4, 0)
    table = calibrate(
        graph, samples, CalibrationOptions("minmax"), model_sha256="0" * 64
    )
    ranges = {**table.ranges, "value": MeasuredRange(0.0, 6.0, 0.0, 3.9)}
    table = replace(
        table,
        ranges=ranges,
        decisions=Decisions(channel_scales={"value": factors}),
    )
    program = quantize(graph, table, QuantizeOptions(scales=scales))
    meaning = next(
        item
        for item in program.metadata.values.values()
        if item.source == "value"
    )
    assert np.allclose(meaning.scale * 255 * np.array(meaning.channels), ends)


def test_scales_of_channels_of_a_shared_range_are_refused() -> None:
    """Values measured as one have one scale."""
    with pytest.raises(BadData, match="4 scales of channels for 'first'"):
        quantized({"first": (0.5,) * 4}, "last", shared=True)
