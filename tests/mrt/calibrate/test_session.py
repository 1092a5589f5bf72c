"""FloatSession: what onnxruntime says when it cannot run a model."""

import numpy as np
import onnx
import onnxruntime as ort
import pytest

from mrt.calibrate import session
from mrt.calibrate.session import FloatSession, integer_input_intervals
from mrt.errors import BadData, BadModel
from mrt.graph.notes import read_from_metadata
from tests.support.graphs import graph_of, node


def test_a_model_that_cannot_be_run_is_refused_without_a_word_of_the_library_on_stderr(
    capfd,
):
    conv = node("Conv", "x w", "y", auto_pad="SAME_UPPER", dilations=[2, 2])
    session = FloatSession(
        graph_of(
            [conv],
            {"x": (1, 1, 8, 8)},
            {"w": np.ones((1, 1, 3, 3), np.float32)},
        )
    )
    with pytest.raises(
        BadModel,
        match=r"the float model cannot be run: .*Dilation not supported",
    ):
        session.run({"x": np.zeros((1, 1, 8, 8), np.float32)})
    assert capfd.readouterr() == ("", "")


def _of_integers(kind):
    return FloatSession(
        graph_of([node("Cast", "x", "y", to=1)], {"x": (1, 3)}, kind=kind)
    )


def test_integer_inputs_take_integers_given_as_floats():
    answer = _of_integers(onnx.TensorProto.INT32).run(
        {"x": np.array([[1.0, -7.0, 300.0]], np.float32)}
    )
    assert answer["y"].tolist() == [[1.0, -7.0, 300.0]]


@pytest.mark.parametrize(
    ("kind", "values", "found"),
    [
        (
            onnx.TensorProto.INT64,
            [0, 0.5, 2],
            r"0.0..2.0 are not all numbers of int64",
        ),
        (
            onnx.TensorProto.UINT8,
            [0, 256, 2],
            r"0.0..256.0 are not all numbers of uint8",
        ),
        (
            onnx.TensorProto.BOOL,
            [0, 1, 2],
            r"0.0..2.0 are not all numbers of bool",
        ),
    ],
)
def test_what_an_integer_input_cannot_hold_is_refused(kind, values, found):
    with pytest.raises(BadData, match=f"input 'x': {found}, the model's type"):
        _of_integers(kind).run({"x": np.array([values], np.float32)})


def test_a_session_that_is_asked_for_nothing_gives_nothing():
    model = graph_of([node("ArgMax", "x", "y", axis=1)], {"x": (1, 3)})
    assert (
        FloatSession(model, []).run({"x": np.zeros((1, 3), np.float32)}) == {}
    )


@pytest.mark.parametrize(
    ("kind", "notes", "expected"),
    [
        (onnx.TensorProto.INT64, {"mrt.indices": "-9 8"}, {"x": (0, 8)}),
        (onnx.TensorProto.FLOAT, {"mrt.indices": "0 8"}, {"x": (0, 8)}),
        (onnx.TensorProto.INT64, {"mrt.compared": "-9 8"}, {"x": (-9, 8)}),
        (onnx.TensorProto.UINT8, {}, {"x": (0, 255)}),
        (onnx.TensorProto.BOOL, {}, {"x": (0, 1)}),
        (onnx.TensorProto.FLOAT, {}, {}),
    ],
)
def test_integers_that_inputs_may_meet(kind, notes, expected):
    model = graph_of([node("Cast", "x", "y", to=10)], {"x": (1, 3)}, kind=kind)
    model.graph.inputs[0].metadata_props.update(notes)
    read_from_metadata(model)
    assert integer_input_intervals(model) == expected


def test_weights_beyond_a_protobuf_are_handed_over_apart(monkeypatch):
    weights = {
        "w": np.arange(4096, dtype=np.float32).reshape(64, 64) / 4096,
        "b": np.ones(64, np.float32),
    }
    weights["idle"] = np.ones(4096, np.float32)  # read by nobody
    model = graph_of(
        [node("MatMul", "x w", "h"), node("Add", "h b", "y")],
        {"x": (1, 64)},
        weights,
    )
    expected = FloatSession(model).run({"x": np.ones((1, 64), np.float32)})["y"]
    monkeypatch.setattr(session, "MOST_INSIDE", 1000)
    sample = {"x": np.ones((1, 64), np.float32)}
    found = FloatSession(model, ["h", "y"]).run(sample)
    assert np.array_equal(found["y"], expected) and np.array_equal(
        found["h"] + 1, expected
    )
    assert (
        model.graph.initializers["w"].const_value.numpy()[0, 1] == 1 / 4096
    )  # the model stays as it was


def test_values_are_written_over_those_of_an_earlier_sample() -> None:
    model = graph_of(
        [node("Neg", "x", "h"), node("Relu", "h", "y")], {"x": (2, 3)}
    )
    session = FloatSession(model, ["h", "y"])
    first = session.run({"x": np.ones((2, 3), np.float32)})
    sample = {
        "x": np.arange(-6, 6, dtype=np.float32).reshape(3, 4)[:2, ::2][
            :, [0, 1, 1]
        ]
    }
    second = session.run(sample, into=first)
    assert second["h"] is first["h"] and second["y"] is first["y"]
    assert second["h"].tolist() == [[6, 4, 4], [2, 0, 0]] and second[
        "y"
    ].tolist() == [
        [6, 4, 4],
        [2, 0, 0],
    ]


def test_values_whose_shape_is_not_fixed_are_new_for_each_sample() -> None:
    model = graph_of(
        [node("NonZero", "x", "places"), node("Cast", "places", "y", to=1)],
        {"x": (1, 3)},
    )
    session = FloatSession(model, ["y"])
    first = session.run({"x": np.float32([[1, 0, 0]])})
    assert session.run({"x": np.float32([[1, 0, 2]])}, into=first)[
        "y"
    ].tolist() == [
        [0, 0],
        [0, 2],
    ]


def test_a_single_number_stays_one_for_every_sample() -> None:
    nodes = [node("Mul", "x factor", "h"), node("Neg", "factor", "y")]
    model = graph_of(nodes, {"x": (2,), "factor": ()}, outputs="h y")
    session = FloatSession(model, ["h", "y"])
    first = session.run({"x": np.float32([1, 2]), "factor": np.float32(3)})
    second = session.run(
        {"x": np.float32([1, 2]), "factor": np.float32(4)}, into=first
    )
    assert (
        second["h"].tolist() == [4, 8]
        and second["y"].shape == ()
        and second["y"] == -4
    )


def test_the_arrays_of_two_samples_are_bound_once(monkeypatch) -> None:
    bound = []
    bind = ort.IOBinding.bind_output
    monkeypatch.setattr(
        ort.IOBinding,
        "bind_output",
        lambda self, *rest: bound.append(rest[0]) or bind(self, *rest),
    )
    session = FloatSession(graph_of([node("Neg", "x", "y")], {"x": (1,)}))
    before: dict[str, np.ndarray] | None = None
    last: dict[str, np.ndarray] | None = None
    for number in range(9):
        sample = {"x": np.float32([number])}
        last, before = session.run(sample, into=before), last
        assert last["y"].tolist() == [-number]
    assert bound == ["y", "y"]


def test_an_array_that_replaces_a_bound_one_is_written() -> None:
    session = FloatSession(graph_of([node("Neg", "x", "y")], {"x": (1,)}))
    values = session.run({"x": np.float32([1])})
    session.run({"x": np.float32([2])}, into=values)
    values["y"] = np.zeros(1, np.float32)
    session.run({"x": np.float32([3])}, into=values)
    assert values["y"].tolist() == [-3]
