"""An output as long as an input, or of a layer that describes, holds no classes; what weights make long may."""

import numpy as np
import onnx
import pytest

from mrt.frontend.onnx import read_onnx
from mrt.graph.class_free import class_free
from tests.support.graphs import build, node


def found(folder, nodes, inputs, weights, shapes, outputs="y"):
    path = folder / "m.onnx"
    onnx.save(build(nodes, inputs, weights, outputs=outputs), path)
    return class_free(read_onnx(path, shapes).model)


SCORE_OF_EACH = [
    node("Mul", "x bins", "m"),
    node("ReduceMean", "m axes", "y", keepdims=0),
]
MEAN_OF_ALL = [
    node("ReduceMean", "x axes", "m", keepdims=1),
    node("MatMul", "m w", "y"),
]
CONSTANTS = {
    "bins": np.ones(4, np.float32),
    "axes": np.array([1]),
    "w": np.ones((4, 3), np.float32),
}


def test_a_score_of_each_step_is_as_long_as_the_input(tmp_path):
    """Weights fix the other axis, though the file leaves it open, too."""
    inputs = {"x": ("steps", "bins")}
    kept = {name: CONSTANTS[name] for name in ("bins", "axes")}
    names = found(tmp_path, SCORE_OF_EACH, inputs, kept, {"x": (9, 4)})
    assert names == {"y"}


@pytest.mark.parametrize("steps", [1, 9])
def test_the_classes_of_all_steps_are_as_many_as_the_weights_say(
    steps, tmp_path
):
    inputs = {"x": ("batch", "steps", 4)}
    kept = {name: CONSTANTS[name] for name in ("w", "axes")}
    shapes = {"x": (1, steps, 4)}
    assert not found(tmp_path, MEAN_OF_ALL, inputs, kept, shapes)


def test_a_batch_is_no_axis_that_may_be_long(tmp_path):
    inputs = {"x": ("n", 4)}
    kept = {"w": CONSTANTS["w"]}
    nodes = [node("MatMul", "x w", "y")]
    assert not found(tmp_path, nodes, inputs, kept, {})


@pytest.mark.parametrize(
    ("outputs", "length", "names"),
    [(256, 256, {"y"}), (255, 256, set()), (100, 100, set())],
)
def test_as_many_numbers_as_a_long_input_has_are_no_classes(
    outputs, length, names, tmp_path
):
    weights = {"w": np.ones((length, outputs), np.float32)}
    inputs = {"x": (1, length)}
    nodes = [node("MatMul", "x w", "y")]
    assert found(tmp_path, nodes, inputs, weights, {}) == names


def one_column(rows):
    return [
        node("MatMul", f"{rows} w", "m"),
        node("Add", "m b", "a"),
        node("Sigmoid", "a", "y"),
    ]


@pytest.mark.parametrize(
    ("nodes", "names"),
    [
        (one_column("x"), {"y"}),
        ([node("Reshape", "x same", "r"), *one_column("r")], {"y"}),
        ([node("ReduceMean", "x last", "y")], {"y"}),
        ([node("MatMul", "queries x", "q"), *one_column("q")], set()),
        ([node("Conv", "x kernel", "c"), *one_column("c")], set()),
    ],
    ids=["rows", "reshaped", "means", "queries", "channels"],
)
def test_one_number_for_each_row_is_no_score_of_a_class(nodes, names, tmp_path):
    """Queries that are weights, and the channels of a convolution, are as many as the classes may be."""
    every = {
        "w": np.ones((4, 1), np.float32),
        "b": np.ones(1, np.float32),
        "same": np.array([1, 9, 4]),
        "last": np.array([2]),
        "queries": np.ones((1, 5, 9), np.float32),
        "kernel": np.ones((5, 9, 1), np.float32),
    }
    read = {name for it in nodes for name in it.input}
    weights = {name: item for name, item in every.items() if name in read}
    assert found(tmp_path, nodes, {"x": (1, 9, 4)}, weights, {}) == names


@pytest.mark.parametrize("operator", ["LSTM", "GRU"])
def test_what_a_recurrence_gives_is_no_class(operator, tmp_path):
    """Its last states, one of them chosen or several joined, and its last step."""
    gates = {"LSTM": 4, "GRU": 3}[operator]
    states = "h c" if operator == "LSTM" else "h"
    nodes = [
        node(operator, "x W R", f"all {states}", hidden_size=5),
        *(node("Squeeze", name, f"{name}_out") for name in states.split()),
        node("Gather", "all last", "y", axis=0),
        node("Gather", "h first", "chosen", axis=0),
        node("Concat", "chosen chosen", "joined", axis=1),
        node("MatMul", "chosen w", "scores"),
        node("Concat", "chosen scores", "both", axis=1),
    ]
    weights = {
        "W": np.ones((1, gates * 5, 4), np.float32),
        "R": np.ones((1, gates * 5, 5), np.float32),
        "w": np.ones((5, 3), np.float32),
        "last": np.array(-1),
        "first": np.array(0),
    }
    names = ["y", "joined", *(f"{name}_out" for name in states.split())]
    outputs = " ".join([*names, "scores", "both"])
    held = found(tmp_path, nodes, {"x": (6, 1, 4)}, weights, {}, outputs)
    assert held == set(names)


LENGTHS = [
    node("ReduceL2", "x axes", "l", keepdims=1),
    node("Clip", "l least", "c"),
    node("Div", "x c", "y"),
]


@pytest.mark.parametrize(
    ("nodes", "is_class_free"),
    [
        ([node("LayerNormalization", "x scale", "y")], True),
        (LENGTHS, True),
        ([node("LpNormalization", "x", "y")], True),
        ([node("LpNormalization", "x", "y", p=1)], False),
        ([node("ReduceSum", "x axes", "l"), node("Div", "x l", "y")], False),
        ([node("ReduceL2", "x axes", "l"), node("Div", "w l", "y")], False),
        ([node("Tanh", "x", "y")], False),
    ],
    ids=["spread", "length", "lp", "shares", "sums", "other's", "tanh"],
)
def test_a_description_is_normalized_by_its_spread_or_length(
    nodes, is_class_free, tmp_path
):
    every = {
        "scale": np.ones(4, np.float32),
        "w": np.ones((1, 4), np.float32),
        "axes": np.array([1]),
        "least": np.array(1e-9, np.float32),
    }
    read = {name for it in nodes for name in it.input}
    weights = {name: item for name, item in every.items() if name in read}
    held = found(tmp_path, nodes, {"x": (1, 4)}, weights, {})
    assert held == ({"y"} if is_class_free else set())


@pytest.mark.parametrize(
    ("operator", "names"),
    [("LinearRegressor", {"y"}), ("LinearClassifier", set())],
)
@pytest.mark.parametrize("moved", [False, True])
def test_targets_of_a_regressor_are_no_classes(
    operator, names, moved, tmp_path
):
    own = {"coefficients": [0.1] * 6, "intercepts": [0.0, 1.0]}
    result, more = "y", []
    if moved:
        result = "r"
        more = [node("Identity", "r", "i"), node("Cast", "i", "y", to=1)]
    if operator == "LinearRegressor":
        layer = node(
            operator, "x", result, domain="ai.onnx.ml", targets=2, **own
        )
    else:
        classes = {"classlabels_ints": [0, 1], "post_transform": "NONE"}
        layer = node(
            operator,
            "x",
            f"label {result}",
            domain="ai.onnx.ml",
            **own,
            **classes,
        )
    info = onnx.helper.make_tensor_value_info
    graph = onnx.helper.make_graph(
        [layer, *more], "g", [info("x", 1, [1, 3])], [info("y", 1, [1, 2])]
    )
    domains = [("", 17), ("ai.onnx.ml", 3)]
    imports = [onnx.helper.make_opsetid(*entry) for entry in domains]
    model = onnx.helper.make_model(graph, opset_imports=imports)
    onnx.save(model, tmp_path / "m.onnx")
    assert class_free(read_onnx(tmp_path / "m.onnx", {}).model) == names
