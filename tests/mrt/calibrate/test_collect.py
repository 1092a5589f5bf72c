"""Calibration of small models whose every value can be worked out by hand."""

import threading
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from onnx import TensorProto, helper, numpy_helper

from mrt.calibrate import collect
from mrt.calibrate.clipped_values import clipped_values
from mrt.calibrate.collect import calibrate
from mrt.calibrate.gathering import ValueStatistics
from mrt.calibrate.held_back import split
from mrt.calibrate.observed_tensor import ObservedTensor
from mrt.calibrate.samples import (
    Sample,
    Samples,
    open_samples,
    synthetic_samples,
)
from mrt.calibrate.session import FloatSession, model_inputs
from mrt.errors import BadData, BadModel
from mrt.table.table import OBSERVERS, CalibrationOptions, MeasuredRange

MINMAX = CalibrationOptions()


def info(
    name: str, shape: list[int], kind: int = TensorProto.FLOAT
) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, kind, shape)


def build(nodes, inputs, outputs, weights: dict[str, np.ndarray]) -> ir.Model:
    graph = helper.make_graph(
        nodes,
        "g",
        inputs,
        outputs,
        [
            numpy_helper.from_array(value, name)
            for name, value in weights.items()
        ],
    )
    model = helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9
    )
    return ir.from_proto(onnx.shape_inference.infer_shapes(model))


def dense_relu() -> ir.Model:
    """y = relu(x w + b) with w = [[1, -1], [2, 0]] by output, b = [0, 1]."""
    nodes = [
        helper.make_node("Gemm", ["x", "w", "b"], ["sum"], transB=1),
        helper.make_node("Relu", ["sum"], ["y"]),
    ]
    weights = {
        "w": np.array([[1, -1], [2, 0]], np.float32),
        "b": np.array([0, 1], np.float32),
    }
    return build(nodes, [info("x", [1, 2])], [info("y", [1, 2])], weights)


def two_layers() -> ir.Model:
    """y = w (w x), w = [[1, -1], [2, 0]] by output."""
    nodes = [
        helper.make_node("Gemm", [name, "w"], [output], transB=1)
        for name, output in (("x", "sum"), ("sum", "y"))
    ]
    return build(
        nodes,
        [info("x", [1, 2])],
        [info("y", [1, 2])],
        {"w": np.array([[1, -1], [2, 0]], np.float32)},
    )


def given(*rows: list[float]) -> Samples:
    samples: list[Sample] = [{"x": np.array([row], np.float32)} for row in rows]
    return Samples(("x",), len(samples), None, "rows", lambda: iter(samples))


class Diary:
    """A callback that writes down what it gets."""

    def __init__(self) -> None:
        self.seen: dict[str, list[tuple[int, list[float], list[float]]]] = {}

    def observe(self, index, sample, name, seen) -> None:
        assert np.array_equal(
            seen.subsample, seen.values
        )  # small ones are not thinned
        self.seen.setdefault(name, []).append(
            (index, sample["x"].ravel().tolist(), seen.values.ravel().tolist())
        )


def test_a_callback_gets_all_that_nodes_give_sample_by_sample() -> None:
    diary = Diary()
    calibrate(
        dense_relu(),
        given([1, 2], [3, -1], [0, 0]),
        MINMAX,
        model_sha256="",
        callbacks=[diary],
    )
    assert diary.seen == {
        "sum": [
            (0, [1, 2], [-1, 3]),
            (1, [3, -1], [4, 7]),
            (2, [0, 0], [0, 1]),
        ],
        "y": [(0, [1, 2], [0, 3]), (1, [3, -1], [4, 7]), (2, [0, 0], [0, 1])],
    }


def test_the_model_is_not_asked_for_what_a_clip_gives() -> None:
    for model, asked in (
        (dense_relu(), ["sum"]),
        (clip_of_relu(), ["sum", "y"]),
    ):  # "y" is a clip of a clip
        assert collect._groups(model, clipped_values(model)) == [asked]


def clip_of_relu() -> ir.Model:
    nodes = [
        helper.make_node("Gemm", ["x", "w"], ["sum"], transB=1),
        helper.make_node("Relu", ["sum"], ["above"]),
        helper.make_node("Clip", ["above", "low", "high"], ["y"]),
    ]
    weights = {
        "w": np.eye(2, dtype=np.float32),
        "low": np.float32(-1),
        "high": np.float32(2),
    }
    return build(nodes, [info("x", [1, 2])], [info("y", [1, 2])], weights)


def test_clips_of_clips_and_of_inputs_are_seen_as_they_are() -> None:
    table = calibrate(
        clip_of_relu(), given([1, 5], [-3, 2]), MINMAX, model_sha256=""
    )
    assert {
        name: (item.min, item.max) for name, item in table.ranges.items()
    } == {
        "x": (-3, 5),
        "sum": (-3, 5),
        "above": (0, 5),
        "y": (0, 2),
    }
    of_input = build(
        [helper.make_node("Relu", ["x"], ["y"])],
        [info("x", [1, 2])],
        [info("y", [1, 2])],
        {},
    )
    assert (
        calibrate(of_input, given([-1, 3]), MINMAX, model_sha256="")
        .ranges["y"]
        .max
        == 3
    )


def test_an_error_of_a_callback_ends_calibration() -> None:
    class Judge:
        def observe(self, index, sample, name, seen) -> None:
            if index == 1:
                raise BadData("not this one")

    with pytest.raises(BadData, match="not this one"):
        calibrate(
            dense_relu(),
            given([1, 2], [3, -1], [0, 0]),
            MINMAX,
            model_sha256="",
            callbacks=[Judge()],
        )


def test_every_value_has_the_range_seen() -> None:
    table = calibrate(
        dense_relu(), given([1, 2], [3, -1]), MINMAX, model_sha256="aa"
    )
    # sums: [1 - 2, 2 + 1] and [3 + 1, 6 + 1]
    assert table.ranges == {
        "x": MeasuredRange(-1.0, 3.0, -1.0, 3.0),
        "sum": MeasuredRange(-1.0, 7.0, -1.0, 7.0),
        "y": MeasuredRange(0.0, 7.0, 0.0, 7.0),
    }
    assert (table.model_sha256, table.options, table.samples) == (
        "aa",
        MINMAX,
        2,
    )


def test_what_feeds_a_sum_of_products_has_means_by_channel() -> None:
    table = calibrate(
        dense_relu(), given([1, 2], [3, -1]), MINMAX, model_sha256="aa"
    )
    assert table.channel_means == {"x": (2.0, 0.5)}


@pytest.mark.parametrize(
    ("operator", "also_read", "clipped"),
    [("Relu", False, False), ("Relu", True, True), ("Abs", False, True)],
)
def test_what_a_layer_gives_to_a_sum_alone_is_hardly_clipped(
    operator: str, also_read: bool, clipped: bool
) -> None:
    """2000 small numbers and one of 50: clipping it costs one square, or, of a sum of 2001 terms, 2001 of them."""
    nodes = [
        helper.make_node(operator, ["x"], ["y"]),
        helper.make_node("ReduceSum", ["y", "axes"], ["sum"]),
        *([helper.make_node("Sqrt", ["y"], ["root"])] if also_read else []),
    ]
    outputs = [
        info("sum", [1, 1]),
        *([info("root", [1, 2001])] if also_read else []),
    ]
    model = build(
        nodes,
        [info("x", [1, 2001])],
        outputs,
        {"axes": np.array([1], np.int64)},
    )
    small = np.abs(
        np.random.Generator(np.random.PCG64(1)).standard_normal(2000)
    )
    row = np.append(small, 50.0).tolist()
    table = calibrate(
        model, given(row), CalibrationOptions("mse", bits=3), model_sha256="0"
    )
    assert (table.ranges["y"].hi < 40) is clipped


def test_means_are_over_places_and_samples() -> None:
    nodes = [helper.make_node("Conv", ["x", "w", "b"], ["y"])]
    weights = {
        "w": np.ones((1, 2, 1, 1), np.float32),
        "b": np.zeros(1, np.float32),
    }
    model = build(
        nodes, [info("x", [1, 2, 1, 2])], [info("y", [1, 1, 1, 2])], weights
    )
    places = ([[[1, 2]], [[0, 0]]], [[[3, 6]], [[-8, -12]]])
    samples: list[Sample] = [
        {"x": np.array([item], np.float32)} for item in places
    ]
    table = calibrate(
        model,
        Samples(("x",), 2, None, "", lambda: iter(samples)),
        MINMAX,
        model_sha256="",
    )
    assert table.channel_means == {"x": (3.0, -5.0)}


def test_the_model_stays_as_it_was() -> None:
    model = dense_relu()
    calibrate(model, given([1, 2]), MINMAX, model_sha256="")
    assert [value.name for value in model.graph.outputs] == ["y"]


def test_the_same_samples_give_the_same_table_and_others_another_digest() -> (
    None
):
    first = calibrate(dense_relu(), given([1, 2]), MINMAX, model_sha256="")
    assert (
        first.text()
        == calibrate(
            dense_relu(), given([1, 2]), MINMAX, model_sha256=""
        ).text()
    )
    other = calibrate(dense_relu(), given([2, 1]), MINMAX, model_sha256="")
    assert first.data_sha256 != other.data_sha256
    # SHA-256 of the bytes 0000803f 00000040, by sha256sum
    assert (
        first.data_sha256
        == "b9c80b5adeca450753a16950c3cc655d271f7bef7a485bc83f112b72fef21d37"
    )


def test_values_too_many_to_hold_are_seen_in_several_runs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    whole = calibrate(
        two_layers(), given([1, 2], [3, -1]), MINMAX, model_sha256=""
    )
    monkeypatch.setattr(collect, "MAX_EXPOSED_BYTES", 8)
    steps: list[tuple[int, int]] = []
    parts = calibrate(
        two_layers(),
        given([1, 2], [3, -1]),
        MINMAX,
        model_sha256="",
        progress=lambda *step: steps.append(step),
    )
    assert parts.text() == whole.text()
    assert steps == [(1, 4), (2, 4), (3, 4), (4, 4)]


def convolution() -> ir.Model:
    weights = (
        np.random.default_rng(0)
        .standard_normal((8, 3, 3, 3))
        .astype(np.float32)
    )
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["sum"]),
        helper.make_node("Relu", ["sum"], ["y"]),
    ]
    return build(
        nodes,
        [info("x", [1, 3, 20, 20])],
        [info("y", [1, 8, 18, 18])],
        {"w": weights},
    )


@pytest.mark.parametrize("observer", OBSERVERS)
def test_running_ahead_gives_the_table_of_one_sample_after_another(
    observer: str,
) -> None:
    model, options = convolution(), CalibrationOptions(observer)
    samples = synthetic_samples({"x": (1, 3, 20, 20)}, 12)
    session = FloatSession(model, ["sum", "y"])
    watches = {
        name: ValueStatistics(options, by_channel=True)
        for name in ["x", "sum", "y"]
    }
    for sample in samples:
        for name, values in {**sample, **session.run(sample)}.items():
            watches[name].update(ObservedTensor(values, values), values)
    table = calibrate(model, samples, options, model_sha256="")
    assert table.ranges == {
        name: watch.observer.range() for name, watch in watches.items()
    }
    assert table.channel_means == {"x": watches["x"].channel_means}
    assert (
        table.text()
        == calibrate(model, samples, options, model_sha256="").text()
    )


def test_at_most_two_samples_are_read_ahead_and_none_after_a_failure() -> None:
    events: list[str] = []

    def read() -> Iterator[Sample]:
        for number in range(100):
            events.append("read")
            yield {
                "x": np.array(
                    [[number, -float("inf") if number == 3 else 1]], np.float32
                )
            }

    with pytest.raises(BadData):
        calibrate(
            dense_relu(), Samples(("x",), 100, None, "rows", read), MINMAX, model_sha256="",
            progress=lambda done, total: events.append("seen"),
        )  # fmt: skip
    assert events.count("seen") == 3
    assert 4 <= events.count("read") <= 5
    assert all(
        events[:end].count("read") <= events[:end].count("seen") + 3
        for end in range(len(events))
    )
    assert not any(
        thread.name.startswith("ThreadPoolExecutor")
        for thread in threading.enumerate()
    )


@pytest.mark.parametrize("observer", ["percentile", "entropy", "mse"])
def test_every_observer_gives_every_value_a_range(observer: str) -> None:
    table = calibrate(
        dense_relu(),
        given([1, 2], [3, -1]),
        CalibrationOptions(observer),
        model_sha256="",
    )
    assert {
        name: (item.min, item.max) for name, item in table.ranges.items()
    } == {
        "x": (-1.0, 3.0),
        "sum": (-1.0, 7.0),
        "y": (0.0, 7.0),
    }


def test_integers_are_not_ranges() -> None:
    nodes = [
        helper.make_node("Relu", ["x"], ["r"]),
        helper.make_node("ArgMax", ["r"], ["y"], axis=1, keepdims=0),
    ]
    model = build(
        nodes, [info("x", [1, 2])], [info("y", [1], TensorProto.INT64)], {}
    )
    assert sorted(
        calibrate(model, given([1, 2]), MINMAX, model_sha256="").ranges
    ) == [
        "r",
        "x",
    ]


def test_a_value_that_overflows_is_named_with_its_sample() -> None:
    model = build(
        [helper.make_node("Exp", ["x"], ["big"])],
        [info("x", [1, 2])],
        [info("big", [1, 2])],
        {},
    )
    with pytest.raises(
        BadData,
        match="rows, sample 1: the model's value 'big' has NaN or infinity among the values",
    ):
        calibrate(model, given([1, 2], [1000, 0]), MINMAX, model_sha256="")


def test_a_value_that_overflows_is_named_with_its_sample_of_the_file(
    tmp_path: Path,
) -> None:
    """Of ten samples four are used, and two of these are held back."""
    model = build(
        [helper.make_node("Exp", ["x"], ["big"])],
        [info("x", [1, 2])],
        [info("big", [1, 2])],
        {},
    )
    rows = np.ones((10, 2), np.float32)
    rows[7] = 1000
    np.savez(tmp_path / "c.npz", x=rows)
    few = open_samples(tmp_path / "c.npz", {"x": (1, 2)}, limit=4)
    left, _ = split(few, 2)
    assert [left.name_of(index) for index in range(2)] == [
        "sample 2",
        "sample 7",
    ]
    with pytest.raises(BadData, match=r"c\.npz, sample 7: the model's value"):
        calibrate(model, left, MINMAX, model_sha256="")


def chosen(operators: str, places: str = "c v x") -> ir.Model:
    """A Where between x and a chain of operators of x, by x > 0."""
    names = ["x", *(f"v{index}" for index in range(len(operators.split())))]
    nodes = [
        helper.make_node(operator, [before], [after])
        for operator, before, after in zip(
            operators.split(), names, names[1:], strict=False
        )
    ]
    operands = [names[-1] if name == "v" else name for name in places.split()]
    nodes += [
        helper.make_node("Greater", ["x", "zero"], ["c"]),
        helper.make_node("Where", operands, ["y"]),
    ]
    values = [info("x", [1, 3])], [info("y", [1, 3])]
    return build(nodes, *values, {"zero": np.zeros(1, np.float32)})


@pytest.mark.parametrize(
    ("operators", "expected"),
    [
        ("Log", (0.0, 2.0)),
        ("Log Neg", (0.0, 2.0)),
        ("Sqrt Exp", (0.0, 15.2)),
        ("Sqrt Atan", (0.0, 1.218)),
    ],
)
def test_numbers_that_a_where_drops_have_no_part_in_a_range(
    operators: str, expected: tuple[float, float]
) -> None:
    """The logarithm and the root of -1 are NaN; 1 and e^2 remain, and 0 where nothing does."""
    model = chosen(operators)
    rows = given([-1, 1, np.e**2], [-1, -1, -1])
    table = calibrate(model, rows, MINMAX, model_sha256="")
    name = "v0" if operators == "Log Neg" else f"v{operators.count(' ')}"
    found = table.ranges[name]
    assert (found.min, found.max) == pytest.approx(expected, rel=1e-2)
    assert table.ranges["y"].max <= 16


@pytest.mark.parametrize(
    ("operators", "places", "name"),
    [
        ("Log", "c x v", "y"),  # the numbers that are none are chosen
        ("Log Relu", "c v x", "v0"),  # a Relu may take NaN for a number
        ("Log Exp", "c v x", "v0"),  # Exp makes 0 of minus infinity
    ],
)
def test_numbers_that_nothing_drops_are_refused(
    operators: str, places: str, name: str
) -> None:
    with pytest.raises(BadData, match=f"value '{name}' has NaN or infinity"):
        calibrate(
            chosen(operators, places),
            given([-1, 0, 1]),
            MINMAX,
            model_sha256="",
        )


def pooled(fill: float, *more: onnx.NodeProto) -> ir.Model:
    """The greatest of each row of x where x > 0; the rest is filled."""
    nodes = [
        helper.make_node("Greater", ["x", "zero"], ["c"]),
        helper.make_node("Where", ["c", "x", "fill"], ["w"]),
        helper.make_node("Transpose", ["w"], ["t"]),
        *(more or [helper.make_node("ReduceMax", ["t"], ["y"])]),
    ]
    weights = {"zero": np.float32([0]), "fill": np.float32([fill])}
    values = [info("x", [1, 3])], [info("y", [1, 1])]
    return build(nodes, *values, weights)


def test_a_fill_of_minus_infinity_that_pooling_drops_has_no_part_in_a_range() -> (
    None
):
    rows = given([-1, 1, 3], [2, -5, -6])
    found = calibrate(pooled(-np.inf), rows, MINMAX, model_sha256="").ranges
    assert (found["w"].min, found["w"].max) == (1, 3)
    assert (found["t"].min, found["t"].max) == (1, 3)
    assert (found["y"].min, found["y"].max) == (2, 3)


SUM = [
    helper.make_node("Add", ["t", "zero"], ["s"]),
    helper.make_node("ReduceMax", ["s"], ["y"]),
]


@pytest.mark.parametrize(
    ("fill", "rows", "more", "name"),
    [
        (-np.inf, [[-1, -2, -3]], [], "y"),  # nothing is beside the fills
        (np.inf, [[-1, 1, 3]], [], "y"),  # the fill is the greatest
        (np.nan, [[-1, 1, 3]], [], "w"),  # neither greater nor less
        (-np.inf, [[-1, 1, 3]], SUM, "w"),  # a sum of the least may not be it
    ],
)
def test_a_fill_that_pooling_may_not_drop_is_refused(
    fill: float,
    rows: list[list[float]],
    more: list[onnx.NodeProto],
    name: str,
) -> None:
    with pytest.raises(BadData, match=f"value '{name}' has NaN or infinity"):
        calibrate(pooled(fill, *more), given(*rows), MINMAX, model_sha256="")


def test_noise_that_a_model_cannot_take_asks_for_data() -> None:
    model = build(
        [helper.make_node("Log", ["x"], ["y"])],
        [info("x", [1, 8])],
        [info("y", [1, 8])],
        {},
    )
    noise = synthetic_samples({"x": (1, 8)}, 2)
    with pytest.raises(BadData, match=r"'y' has NaN .*: give --data"):
        calibrate(model, noise, MINMAX, model_sha256="")


def test_no_samples_are_refused() -> None:
    with pytest.raises(
        BadData, match="rows: holds no samples; expected at least one"
    ):
        calibrate(dense_relu(), given(), MINMAX, model_sha256="")


def test_weights_listed_among_the_inputs_are_no_inputs() -> None:
    nodes = [helper.make_node("Gemm", ["x", "w"], ["y"])]
    weights = {"w": np.eye(2, dtype=np.float32)}
    model = build(
        nodes,
        [info("x", [1, 2]), info("w", [2, 2])],
        [info("y", [1, 2])],
        weights,
    )
    assert [value.name for value in model_inputs(model)] == ["x"]
    assert sorted(
        calibrate(model, given([1, 2]), MINMAX, model_sha256="").ranges
    ) == [
        "x",
        "y",
    ]


def test_inputs_of_integers_are_cast_to_what_the_model_declares() -> None:
    model = build(
        [helper.make_node("Cast", ["x"], ["y"], to=TensorProto.FLOAT)],
        [info("x", [1, 2], TensorProto.INT32)],
        [info("y", [1, 2])],
        {},
    )
    assert calibrate(model, given([1, 2]), MINMAX, model_sha256="").ranges[
        "y"
    ] == MeasuredRange(1.0, 2.0, 1.0, 2.0)


def test_a_model_that_onnxruntime_refuses_is_a_bad_model() -> None:
    model = build(
        [helper.make_node("Relu", ["x"], ["y"])],
        [info("x", [1, 2])],
        [info("y", [1, 2])],
        {},
    )
    model.graph.node(0).op_type = "NoSuchOperator"
    with pytest.raises(
        BadModel, match=r"onnxruntime refuses the float model: .*NoSuchOperator"
    ):
        FloatSession(model)


def test_a_sample_of_the_wrong_shape_is_a_bad_model_run() -> None:
    with pytest.raises(BadModel, match="the float model cannot be run"):
        FloatSession(dense_relu()).run({"x": np.zeros((1, 3), np.float32)})


def test_synthetic_samples_calibrate() -> None:
    table = calibrate(
        dense_relu(),
        synthetic_samples({"x": (1, 2)}, 8, seed=0),
        MINMAX,
        model_sha256="",
    )
    assert table.ranges["x"].min < 0 < table.ranges["x"].max
