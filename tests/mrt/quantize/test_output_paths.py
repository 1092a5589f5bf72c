"""A value lies on an output path unless something else reads it."""

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
