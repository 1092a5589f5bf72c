"""moved_from and moved_to: a value, what it was moved from, and what it is moved to."""

from mrt.graph.values import moved_from, moved_to, source_of_moves
from tests.support.graphs import graph_of, node

NODES = [
    node("Relu", "x", "r"),
    node("Transpose", "r", "t", perm=[1, 0]),
    node("Reshape", "t shape", "m"),
    node("Identity", "m", "y"),
]
SIZES = {"shape": [6]}


def names(values):
    return [value.name for value in values]


def test_the_path_ends_at_what_no_move_makes():
    model = graph_of(NODES, {"x": (2, 3)}, SIZES)
    (output,) = model.graph.outputs
    moved = output.producer().inputs[0]
    assert names(moved_from(moved)) == ["m", "t", "r"]
    assert names(moved_from(output)) == ["y"]


def test_the_caller_says_what_moves():
    model = graph_of(NODES, {"x": (2, 3)}, SIZES)
    (output,) = model.graph.outputs
    everything = ("Identity", "Reshape", "Transpose", "Relu")
    assert names(moved_from(output, everything)) == ["y", "m", "t", "r", "x"]
    assert source_of_moves(output, ("Identity", "Reshape")).name == "t"


def test_a_value_is_followed_to_all_that_it_is_moved_to():
    branches = [
        node("Relu", "x", "r"),
        node("Transpose", "r", "a", perm=[1, 0]),
        node("Reshape", "r shape", "b"),
        node("Reshape", "a shape", "c"),
        node("Add", "b c", "y"),
    ]
    model = graph_of(branches, {"x": (2, 3)}, SIZES)
    relu = next(it for it in model.graph if it.op_type == "Relu")
    assert names(moved_to(relu.outputs[0])) == ["r", "a", "b", "c"]
    assert names(moved_to(relu.outputs[0], ("Reshape",))) == ["r", "b"]
