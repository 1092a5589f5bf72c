"""Streams: all that must have the same channels as the output of a convolution, and what has none."""

import numpy as np
import onnx_ir as ir
import pytest

from mrt.calibrate.samples import synthetic_samples
from mrt.calibrate.session import FloatSession
from mrt.duplicate.add_duplicates import add_duplicates
from mrt.duplicate.channel_chains import channel_chains
from mrt.duplicate.channel_streams import channel_streams
from mrt.errors import BadData
from mrt.graph.notes import duplicates_of
from tests.support.float_models import FloatModel, f32

CHANNELS = 5


def network(last: str = "Conv") -> FloatModel:
    """A stream to which two blocks add, one through a clip, one of a convolution that reads the stream itself."""
    rng = np.random.default_rng(4)
    model = FloatModel(x=(1, 3, 12, 12))

    def conv(x: str, outputs: int, inputs: int, name: str | None = None) -> str:
        weights = rng.normal(size=(outputs, inputs, 1, 1))
        return model.conv(x, weights, rng.normal(size=outputs), name=name)

    start = conv("x", CHANNELS, 3, "start")
    inner = model.add("Clip", conv(start, 7, CHANNELS), f32(0), f32(6))
    block = model.conv(
        conv(inner, CHANNELS, 7),
        rng.normal(size=(CHANNELS, 1, 3, 3)),
        rng.normal(size=CHANNELS),
        pads=(1, 1, 1, 1),
        group=CHANNELS,
    )
    once = model.add("Add", start, block, name="once")
    direct = conv(once, CHANNELS, CHANNELS)
    twice = model.add("Add", direct, once, name="twice")
    relu = model.add("Relu", twice, name="relu")
    pool = model.add("MaxPool", relu, kernel_shape=[2, 2], strides=[2, 2])
    if last == "Conv":
        conv(pool, 4, CHANNELS, "out")
    else:
        model.add(last, pool, name="out")
    return model


def graph_of(model: FloatModel, *outputs: str) -> ir.Model:
    return ir.from_proto(model.proto(*(outputs or ("out",))))


def test_a_stream_holds_all_that_must_grow_together():
    graph = graph_of(network())
    assert [chain.channels for chain in channel_chains(graph)] == [7]
    (stream,) = channel_streams(graph)
    names = [value.name for value in stream.rounded]
    # `relu` is the only reader of `twice`, and a sum reads accumulators of `block`.
    assert names[0] == stream.name == "start"
    assert names[-2:] == ["once", "relu"]
    assert len(stream.convolutions) == 4
    assert "twice" in {value.name for value in stream.moved}
    assert len(stream.readers) == 3


def test_float_answers_stay_with_several_copies_of_a_channel():
    model = network()
    graph = graph_of(model)
    (stream,) = channel_streams(graph)
    values = *stream.rounded, *stream.moved
    before = FloatSession(graph, ["out"])
    add_duplicates(graph, {"start": [3, 1, 3, 3]})
    after = FloatSession(graph, ["out", "once", "relu"])
    for sample in synthetic_samples(model.inputs, 3, 0):
        found = after.run(sample)
        assert np.allclose(found["out"], before.run(sample)["out"], rtol=1e-4)
        for name in ("once", "relu"):
            assert found[name].shape[1] == CHANNELS + 4
            assert np.allclose(
                found[name][:, CHANNELS:], found[name][:, [3, 1, 3, 3]]
            )
    assert duplicates_of(stream.rounded[-1]) == ((5, 3), (6, 1), (7, 3), (8, 3))
    assert {value.shape.numpy()[1] for value in values if value.shape} == {
        CHANNELS + 4
    }


def test_a_channel_has_three_copies_more_at_most():
    with pytest.raises(BadData, match="5 of 5 channels can be, 3 times each"):
        add_duplicates(graph_of(network()), {"start": [3, 3, 3, 3]})


@pytest.mark.parametrize("last", ["Sigmoid", "AveragePool"])
def test_what_else_is_read_cannot_grow(last):
    if last == "AveragePool":
        graph = graph_of(network(), "out", "once")  # `once` is an output
    else:
        graph = graph_of(network(last))
    assert list(channel_streams(graph)) == []
    with pytest.raises(BadData, match="of which none can be"):
        add_duplicates(graph, {"start": [0]})


def test_what_is_added_from_outside_cannot_grow():
    rng = np.random.default_rng(4)
    model = FloatModel(x=(1, 3, 12, 12))
    y = model.conv("x", rng.normal(size=(3, 3, 1, 1)), rng.normal(size=3))
    y = model.add("Add", y, "x")
    model.conv(y, rng.normal(size=(4, 3, 1, 1)), rng.normal(size=4), name="out")
    assert list(channel_streams(graph_of(model))) == []
