"""A value lies on an output path unless something else reads it."""

import numpy as np

from mrt.quantize.output_paths import output_path_values
from tests.support.graphs import graph_of, node


def test_what_is_read_elsewhere_ends_the_path():
    nodes = [
        node("Neg", "x", "a"),
        node("Relu", "a", "b"),
        node("Transpose", "b", "y", perm=[1, 0]),
        node("Add", "b b", "s"),
        node("Softmax", "s", "z"),
    ]
    model = graph_of(nodes, {"x": (2, 3)}, outputs="y z")
    found = output_path_values(model.graph, list(model.graph), {})
    assert found == {"y", "z", "s"}


def test_what_has_no_other_reader_is_followed_to_the_input():
    nodes = [node("Neg", "x", "a"), node("Relu", "a", "y")]
    model = graph_of(nodes, {"x": (2, 3)})
    found = output_path_values(model.graph, list(model.graph), {})
    assert found == {"x", "a", "y"}


def test_averages_are_on_the_path_and_products_are_not():
    """An average is a sum times a constant."""
    nodes = [
        node("Relu", "x", "a"),
        node("ReduceSum", "a axes", "b"),
        node("Mul", "b share", "c"),
        node("Reshape", "c shape", "y"),
        node("MatMul", "p w", "q"),
    ]
    constants = {
        "axes": np.array([2, 3]),
        "share": np.float32(1 / 9),
        "shape": np.array([1, 4]),
        "w": np.ones((4, 4), np.float32),
    }
    shapes = {"x": (1, 4, 3, 3), "p": (2, 4)}
    model = graph_of(nodes, shapes, constants, outputs="y q")
    found = output_path_values(model.graph, list(model.graph), {})
    assert found - constants.keys() == {"x", "a", "b", "c", "y", "q"}


def path_of_choice(last, outputs):
    """The path behind sums of offsets and the best score of each row, three of which are chosen."""
    nodes = [
        node("Add", "offsets places", "boxes"),
        node("ReduceMax", "scores axes", "best", keepdims=0),
        node("TopK", "best k", "top chosen", axis=0),
        node("Gather", "boxes chosen", "rows", axis=0),
        *last,
    ]
    shapes = {"offsets": (5, 4), "scores": (5, 3)}
    constants = {
        "places": np.ones((5, 4), np.float32),
        "axes": np.array([1]),
        "k": np.array([3]),
        "w": np.ones((4, 4), np.float32),
    }
    model = graph_of(nodes, shapes, constants, outputs=outputs)
    found = output_path_values(model.graph, list(model.graph), {})
    return found & {"offsets", "boxes", "scores", "best"}


def test_boxes_and_the_scores_that_choose_them_are_on_the_path():
    found = path_of_choice([], "rows top")
    assert found == {"offsets", "boxes", "scores", "best"}


def test_what_is_chosen_for_another_layer_is_not_on_the_path():
    found = path_of_choice([node("MatMul", "rows w", "y")], "y")
    assert not found
