"""lower_expand: before and after on the smallest graphs, and where it must not apply."""

import numpy as np
import pytest

from mrt.errors import Unsupported
from mrt.rewrite import rewrite
from mrt.rewrite.movement.expand import lower_expand
from tests.support.graphs import apply_pass, graph_of, node, operators_of


def _integers(*values):
    return {"k": np.array(values, np.int64)}


@pytest.mark.parametrize(
    ("operator", "shape", "numbers", "results", "copies"),
    [
        ("Expand", (2, 1, 3), (2, 4, 3), ["Concat"], [4]),
        ("Expand", (1, 2, 1, 1), (1, 2, 3, 5), ["Concat", "Concat"], [3, 5]),
        ("Expand", (3, 1), (2, 3, 2), ["Reshape", "Concat", "Concat"], [2, 2]),
        ("Tile", (2, 3), (1, 3), ["Concat"], [3]),
        ("Tile", (2, 3), (2, 2), ["Concat", "Concat"], [2, 2]),
        ("Expand", (1, 1), (1, 256), ["Concat"], [256]),
        ("Expand", (2, 1), (2, 257), ["Concat"] * 3, [17, 2, 16]),
        ("Tile", (2, 3), (1, 900), ["Concat"] * 2, [30, 30]),
    ],
)
def test_copies_are_a_concat(operator, shape, numbers, results, copies):
    model = graph_of(
        [node(operator, "x k", "y")], {"x": shape}, _integers(*numbers)
    )
    assert apply_pass(lower_expand, model, 0) == 1
    assert operators_of(model) == results
    assert [
        len(entry.inputs) for entry in model.graph if entry.op_type == "Concat"
    ] == copies


def test_more_copies_than_a_graph_should_hold_stay():
    assert (
        lower_expand(
            graph_of(
                [node("Expand", "x k", "y")], {"x": (1, 1)}, _integers(1, 65537)
            )
        )
        == 0
    )


@pytest.mark.parametrize("operator", ["Add", "Sub", "Mul", "Div", "Max", "Min"])
def test_a_reader_that_broadcasts_needs_no_copies(operator):
    nodes = [node("Expand", "x k", "e"), node(operator, "e z", "y")]
    model = graph_of(
        nodes, {"x": (1, 2, 1), "z": (3, 2, 4)}, _integers(3, 2, 4)
    )
    assert apply_pass(lower_expand, model, 0) == 1
    assert operators_of(model) == [operator]


@pytest.mark.parametrize(
    ("nodes", "inputs", "kept"),
    [
        ([node("Add", "e z", "y")], {"z": (4,)}, ["Concat", "Add"]),  # the Expand decides the shape
        ([node("Add", "e e", "y")], {}, ["Concat", "Add"]),
        ([node("Relu", "e", "y")], {}, ["Concat", "Relu"]),
        ([node("Mul", "e z", "a"), node("Exp", "e", "b"), node("Add", "a b", "y")], {"z": (3, 4)},
         ["Concat", "Mul", "Exp", "Add"]),
    ],
)  # fmt: skip
def test_other_readers_get_copies(nodes, inputs, kept):
    model = graph_of(
        [node("Expand", "x k", "e"), *nodes],
        {"x": (1, 4), **inputs},
        _integers(3, 4),
    )
    assert apply_pass(lower_expand, model) == 1
    assert operators_of(model) == kept


def test_a_result_of_the_graph_keeps_its_copies():
    nodes = [node("Expand", "x k", "e"), node("Add", "e z", "y")]
    model = graph_of(
        nodes, {"x": (1, 4), "z": (3, 4)}, _integers(3, 4), outputs="y e"
    )
    assert apply_pass(lower_expand, model, 0) == 1
    assert operators_of(model) == ["Concat", "Add"]


def test_a_tile_of_a_broadcast_reader_is_not_left_out():
    nodes = [node("Tile", "x k", "e"), node("Add", "e z", "y")]
    model = graph_of(nodes, {"x": (2, 1), "z": (4, 1)}, _integers(2, 1))
    assert apply_pass(lower_expand, model, 0) == 1
    assert operators_of(model) == ["Concat", "Add"]


def test_copies_of_a_constant_stay():
    nodes = [node("Expand", "w k", "e"), node("Add", "x e", "y")]
    assert (
        lower_expand(
            graph_of(
                nodes,
                {"x": (3, 4)},
                {"w": np.ones((1, 4), np.float32), **_integers(3, 4)},
            )
        )
        == 0
    )


def test_a_computed_shape_stays():
    nodes = [node("Cast", "s", "k", to=7), node("Expand", "x k", "y")]
    assert lower_expand(graph_of(nodes, {"x": (1, 4), "s": (2,)})) == 0


@pytest.mark.parametrize("operator", ["Expand", "Tile"])
def test_no_copies_at_all_are_refused_by_name(operator):
    model = graph_of(
        [node(operator, "x k", "y")], {"x": (1, 4)}, _integers(0, 4)
    )
    assert lower_expand(model) == 0
    with pytest.raises(Unsupported, match=rf"{operator}:y \({operator}\)"):
        rewrite(model)


def test_copies_for_a_maximum_of_three_are_made():
    nodes = [node("Expand", "x k", "e"), node("Max", "e a b", "y")]
    shapes = {"x": (2, 1), "a": (1, 3), "b": (2, 3)}
    model = graph_of(nodes, shapes, _integers(2, 3))
    assert apply_pass(lower_expand, model, 0) == 1
    assert operators_of(model) == ["Concat", "Max"]
