"""Second copies of channels leave float answers alone; and copies that a model cannot have are refused."""

import numpy as np
import onnx_ir as ir
import pytest

from mrt.calibrate.samples import synthetic_samples
from mrt.calibrate.session import FloatSession
from mrt.duplicate.add_duplicates import add_duplicates, paired_channels
from mrt.errors import BadData
from mrt.graph.notes import duplicates_of, set_duplicates
from tests.support.float_models import FloatModel, f32


def network() -> FloatModel:
    """Five channels through a depthwise convolution and pools to two readers.

    Beside them there are others that nothing mixes again.
    """
    rng = np.random.default_rng(4)
    model = FloatModel(x=(1, 3, 12, 12))
    y = model.conv(
        "x",
        rng.normal(size=(5, 3, 3, 3)),
        rng.normal(size=5),
        pads=(1, 1, 1, 1),
    )
    y = model.add("Clip", y, f32(0), f32(6), name="first")
    y = model.conv(
        y,
        rng.normal(size=(5, 1, 3, 3)),
        rng.normal(size=5),
        pads=(1, 1, 1, 1),
        group=5,
        strides=[2, 2],
    )
    y = model.add("Relu", y, name="second")
    y = model.add(
        "MaxPool", y, kernel_shape=[2, 2], strides=[2, 2], pads=[0, 0, 1, 1]
    )
    one = model.conv(y, rng.normal(size=(4, 5, 1, 1)), rng.normal(size=4))
    other = model.add(
        "Relu",
        model.conv(y, rng.normal(size=(4, 5, 1, 1)), rng.normal(size=4)),
        name="unmixed",
    )
    model.add("Add", one, other, name="out")
    return model


def test_float_answers_stay_and_shapes_and_pairs_are_known():
    model = network()
    graph = ir.from_proto(model.proto("out"))
    before = FloatSession(graph, ["out"])
    add_duplicates(graph, {"first": [3, 1]})
    after = FloatSession(graph, ["out", "first", "second"])
    for sample in synthetic_samples(model.inputs, 3, 0):
        found = after.run(sample)
        assert np.allclose(found["out"], before.run(sample)["out"], atol=1e-5)
        for name in ("first", "second"):
            assert found[name].shape[1] == 7
            assert np.array_equal(found[name][:, 5:], found[name][:, [3, 1]])
    values = {
        value.name: value for node in graph.graph for value in node.outputs
    }
    assert (
        duplicates_of(values["second"])
        == duplicates_of(values["first"])
        == ((5, 3), (6, 1))
    )
    shapes = {
        name: value.shape.numpy()[1]
        for name, value in values.items()
        if value.shape is not None
    }
    assert shapes["first"] == shapes["second"] == 7
    assert (
        sum(size == 7 for size in shapes.values()) == 5
    )  # two convolutions, two clips and a pool


def test_a_channel_gets_one_duplicate_and_a_duplicate_none():
    graph = ir.from_proto(network().proto("out"))
    add_duplicates(graph, {"first": [3]})
    for again in (3, 5):
        with pytest.raises(
            BadData,
            match=rf"\[{again}\] of 'first' are to be duplicated, where 4 of 6 channels can be",
        ):
            add_duplicates(graph, {"first": [again]})
    add_duplicates(graph, {"first": [0]})


@pytest.mark.parametrize(
    ("duplicates", "sentence"),
    [
        ({"unknown": [0]}, "'unknown' are to be duplicated, of which none"),
        ({"unmixed": [0]}, "'unmixed' are to be duplicated, of which none"),
        ({"second": [0]}, "'second' are to be duplicated, of which none"),
        (
            {"first": [5]},
            r"channels \[5\] of 'first' are to be duplicated, where 5 of 5 channels",
        ),
        ({"first": [-1]}, r"channels \[-1\] of 'first'"),
        ({"first": [1] * 4}, r"channels \[1, 1, 1, 1\] of 'first'"),
        ({"first": []}, r"channels \[\] of 'first'"),
    ],
)
def test_what_the_model_cannot_have_is_refused(duplicates, sentence):
    with pytest.raises(BadData, match=sentence):
        add_duplicates(ir.from_proto(network().proto("out")), duplicates)


def test_a_file_that_lies_about_duplicates_is_not_believed_here():
    graph = ir.from_proto(network().proto("out"))
    first = next(
        value
        for node in graph.graph
        for value in node.outputs
        if value.name == "first"
    )
    set_duplicates(first, ((1, 99), (7, 6)))
    assert paired_channels(first) == [1]
    add_duplicates(graph, {"first": [0]})
