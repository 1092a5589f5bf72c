"""lower_onehot_scatter: before and after on the smallest graphs, and where it must not apply."""

import numpy as np
import pytest

from mrt.rewrite.lookup.onehot_scatter import lower_onehot_scatter
from tests.support.graphs import apply_pass, graph_of, node, operators_of, run

ROWS = {"x": (4, 3), "u": (2, 3)}


def test_one_hot_is_a_choice_by_comparison():
    nodes = [
        node("ArgMax", "x", "i", axis=1, keepdims=0),
        node("OneHot", "i d v", "y"),
    ]
    model = graph_of(
        nodes,
        {"x": (4, 3)},
        {"d": np.array(3), "v": np.array([-1, 2], np.float32)},
    )
    assert apply_pass(lower_onehot_scatter, model, 0) == 1
    assert operators_of(model) == [
        "ArgMax",
        "Reshape",
        "Equal",
        "Equal",
        "Or",
        "Where",
    ]


def test_places_in_several_axes_are_places_in_one():
    nodes = [
        node("ArgMax", "x", "i", axis=0),
        node("GatherND", "t i", "y"),
    ]
    table = {"t": np.arange(16, dtype=np.float32).reshape(4, 4)}
    model = graph_of(nodes, {"x": (4, 2)}, table)
    assert apply_pass(lower_onehot_scatter, model, 0) == 1
    assert operators_of(model)[-4:] == ["Min", "Mul", "ReduceSum", "Gather"]


def test_single_places_are_looked_up_as_they_are():
    nodes = [
        node("ArgMax", "x", "i", axis=0),
        node("Sub", "i n", "j"),  # from the end
        node("GatherND", "t j", "y"),
    ]
    tables = {
        "n": np.array(4),
        "t": np.arange(12, dtype=np.float32).reshape(4, 3),
    }
    model = graph_of(nodes, {"x": (4, 1)}, tables)
    assert apply_pass(lower_onehot_scatter, model, 0) == 1
    assert operators_of(model) == ["ArgMax", "Sub", "Reshape", "Gather"]


def test_rows_written_at_known_places():
    model = graph_of(
        [node("ScatterND", "x i u", "y")], ROWS, {"i": np.array([[3], [1]])}
    )
    assert apply_pass(lower_onehot_scatter, model, 0) == 1
    assert operators_of(model) == [
        "Reshape",
        "Reshape",
        "Concat",
        "Gather",
        "Reshape",
    ]


@pytest.mark.parametrize(
    ("indices", "reduction"),
    [([[1], [1]], "none"), ([[1], [-3]], "none")],
    ids=str,
)
def test_places_written_twice_stay(indices, reduction):
    model = graph_of(
        [node("ScatterND", "x i u", "y", reduction=reduction)],
        ROWS,
        {"i": np.array(indices)},
    )
    assert lower_onehot_scatter(model) == 0


@pytest.mark.parametrize("reduction", ["add", "mul", "max", "min"])
@pytest.mark.parametrize(
    "indices", [[[3], [1]], [[1], [-3]]], ids=["apart", "in one place"]
)
def test_rows_are_reduced_at_known_places(indices, reduction):
    model = graph_of(
        [node("ScatterND", "x i u", "y", reduction=reduction)],
        ROWS,
        {"i": np.array(indices)},
        opset=20,
    )
    assert apply_pass(lower_onehot_scatter, model) == 1
    assert "ScatterND" not in operators_of(model)


def test_elements_that_meet_are_all_added():
    indices = np.array([[0, 0, 1], [0, 2, 0]])
    scatter = node("ScatterElements", "x i u", "y", reduction="add", axis=1)
    model = graph_of([scatter], {"x": (2, 3), "u": (2, 3)}, {"i": indices})
    assert apply_pass(lower_onehot_scatter, model) == 1
    feeds = {
        "x": np.zeros((2, 3), np.float32),
        "u": np.float32([[1, 2, 3], [4, 5, 6]]),
    }
    assert run(model, feeds)["y"].tolist() == [[3, 3, 0], [10, 0, 5]]


def test_computed_places_to_write_to_stay():
    nodes = [node("Cast", "p", "i", to=7), node("ScatterND", "x i u", "y")]
    assert lower_onehot_scatter(graph_of(nodes, ROWS | {"p": (2, 1)})) == 0


def test_one_hot_of_no_numbers_stays():
    nodes = [
        node("ArgMax", "x", "i", axis=1, keepdims=0),
        node("OneHot", "i d v", "y"),
    ]
    numbers = {"d": np.array(0), "v": np.array([-1, 2], np.float32)}
    assert lower_onehot_scatter(graph_of(nodes, {"x": (4, 3)}, numbers)) == 0


@pytest.mark.parametrize("shapes", [{"x": ("n", 3)}, {"p": ("n", 1)}], ids=str)
def test_places_of_unknown_number_stay(shapes):
    nodes = [node("Cast", "p", "i", to=7), node("GatherND", "x i", "y")]
    model = graph_of(nodes, {"x": (4, 3), "p": (2, 1)} | shapes)
    assert lower_onehot_scatter(model) == 0
