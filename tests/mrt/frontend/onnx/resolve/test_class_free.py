"""An output as long as an input, or a state of a recurrence, holds no classes; what weights make long may."""

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


@pytest.mark.parametrize("operator", ["LSTM", "GRU"])
def test_states_of_a_recurrence_hold_no_classes(operator, tmp_path):
    gates = {"LSTM": 4, "GRU": 3}[operator]
    states = "h c" if operator == "LSTM" else "h"
    nodes = [
        node(operator, "x W R", f"all {states}", hidden_size=5),
        *(node("Squeeze", name, f"{name}_out") for name in states.split()),
        node("Gather", "all last", "y", axis=0),
    ]
    weights = {
        "W": np.ones((1, gates * 5, 4), np.float32),
        "R": np.ones((1, gates * 5, 5), np.float32),
        "last": np.array(-1),
    }
    names = [f"{name}_out" for name in states.split()]
    outputs = " ".join(["y", *names])
    held = found(tmp_path, nodes, {"x": (6, 1, 4)}, weights, {}, outputs)
    assert held == set(names)
