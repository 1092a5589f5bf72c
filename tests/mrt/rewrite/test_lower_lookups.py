"""lower_lookups: before and after on the smallest graphs, and where it must not apply."""

import numpy as np
import pytest

from mrt.rewrite.lower_lookups import lower_lookups
from tests.graphs import apply_pass, graph_of, node, operators_of

ROWS = {"x": (4, 3), "u": (2, 3)}


def test_one_hot_is_a_choice_by_comparison():
    nodes = [node("ArgMax", "x", "i", axis=1, keepdims=0), node("OneHot", "i d v", "y")]
    model = graph_of(nodes, {"x": (4, 3)}, {"d": np.array(3), "v": np.array([-1, 2], np.float32)})
    assert apply_pass(lower_lookups, model, 0) == 1
    assert operators_of(model) == ["ArgMax", "Reshape", "Equal", "Equal", "Or", "Where"]


def test_places_in_several_axes_are_places_in_one():
    nodes = [node("ArgMax", "x", "i", axis=0), node("GatherND", "x i", "y")]
    model = graph_of(nodes, {"x": (4, 1)})
    assert apply_pass(lower_lookups, model, 0) == 1
    assert operators_of(model)[-4:] == ["Min", "Mul", "ReduceSum", "Gather"]


def test_rows_written_at_known_places():
    model = graph_of([node("ScatterND", "x i u", "y")], ROWS, {"i": np.array([[3], [1]])})
    assert apply_pass(lower_lookups, model, 0) == 1
    assert operators_of(model) == ["Reshape", "Reshape", "Concat", "Gather", "Reshape"]


@pytest.mark.parametrize(
    ("indices", "reduction"), [([[1], [1]], "none"), ([[1], [-3]], "none"), ([[1], [2]], "add")], ids=str
)
def test_places_written_twice_or_added_to_stay(indices, reduction):
    model = graph_of([node("ScatterND", "x i u", "y", reduction=reduction)], ROWS, {"i": np.array(indices)})
    assert lower_lookups(model) == 0


def test_computed_places_to_write_to_stay():
    nodes = [node("Cast", "p", "i", to=7), node("ScatterND", "x i u", "y")]
    assert lower_lookups(graph_of(nodes, ROWS | {"p": (2, 1)})) == 0
