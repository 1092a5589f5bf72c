"""Which values count as rounded, and how many steps they have."""

import numpy as np
import onnx_ir as ir
import pytest

from mrt.calibrate.samples import synthetic_samples
from mrt.duplicate.choose import choose_duplicates
from mrt.duplicate.noise import noise_of_channels
from mrt.graph.notes import set_picture_layout
from mrt.quantize import QuantizeOptions
from tests.support.float_models import FloatModel

PLAIN = QuantizeOptions()


def noise(
    model: FloatModel, graph: ir.Model | None = None
) -> dict[str, np.ndarray]:
    graph = graph or ir.from_proto(model.proto("out"))
    return noise_of_channels(
        graph, synthetic_samples(model.inputs, 5, 0), PLAIN, frozenset()
    )


def test_bytes_are_not_rounded():
    rng = np.random.default_rng(1)
    model = FloatModel(x=(1, 8, 8, 3))
    image = model.add("Transpose", "x", perm=[0, 3, 1, 2], name="image")
    y = model.add(
        "Relu",
        model.conv(image, rng.normal(size=(4, 3, 1, 1)), np.zeros(4)),
        name="first",
    )
    model.conv(y, rng.normal(size=(2, 4, 1, 1)), np.zeros(2), name="out")
    assert set(noise(model)) == {"image", "first"}
    graph = ir.from_proto(model.proto("out"))
    set_picture_layout(graph.graph.inputs[0], "NCHW")
    assert set(noise(model, graph)) == {"first"}


def test_a_clip_that_begins_below_0_has_half_the_steps():
    found = []
    for low in (0.0, -1.0):
        rng = np.random.default_rng(1)
        model = FloatModel(x=(1, 3, 8, 8))
        y = model.conv("x", rng.normal(size=(4, 3, 1, 1)), np.full(4, 50.0))
        y = model.add(
            "Clip", y, np.float32(low), np.float32(1000), name="first"
        )
        model.conv(y, rng.normal(size=(2, 4, 1, 1)), np.zeros(2), name="out")
        found.append(noise(model)["first"])
    assert found[1] == pytest.approx(found[0] * (255 / 127) ** 2, rel=1e-5)


def joined() -> FloatModel:
    """`one` and `other`, of which `both` are what a convolution reads."""
    rng = np.random.default_rng(3)
    model = FloatModel(x=(1, 3, 8, 8))
    parts = [
        model.add(
            "Relu",
            model.conv("x", rng.normal(size=(4, 3, 1, 1)), np.zeros(4)),
            name=name,
        )
        for name in ("one", "other")
    ]
    y = model.add("Concat", *parts, axis=1, name="both")
    y = model.add(
        "Relu",
        model.conv(y, rng.normal(size=(9, 8, 1, 1)), np.zeros(9)),
        name="last",
    )
    model.conv(y, rng.normal(size=(9, 9, 1, 1)), np.zeros(9), name="out")
    return model


def test_what_is_joined_has_scales_of_channels(monkeypatch):
    seen = []
    monkeypatch.setattr(
        "mrt.duplicate.choose.noise_of_channels",
        lambda *given: seen.append(given[3]) or noise_of_channels(*given),
    )
    model = joined()
    for by_channel in (True, False):
        graph = ir.from_proto(model.proto("out"))
        choose_duplicates(
            graph,
            synthetic_samples(model.inputs, 5, 0),
            PLAIN,
            by_channel=by_channel,
        )
    assert seen == [{"both", "one", "other", "last"}, frozenset()]
