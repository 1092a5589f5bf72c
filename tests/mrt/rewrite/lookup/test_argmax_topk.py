"""canonicalize_argmax_topk: ArgMin, the last of equals, and axes from the front."""

import numpy as np
import pytest

from mrt.rewrite.lookup.argmax_topk import canonicalize_argmax_topk
from tests.support.graphs import apply_pass, graph_of, node, operators_of, run

TIES = {"x": np.array([[1, 3, 3, 0, 0]], np.float32)}


def _places(operator, **attributes):
    model = graph_of(
        [
            node(operator, "x", "i", axis=1, **attributes),
            node("Cast", "i", "y", to=1),
        ],
        {"x": (1, 5)},
    )
    changes = apply_pass(canonicalize_argmax_topk, model, 0)
    return changes, operators_of(model), run(model, TIES)["y"].tolist()


def test_the_least_is_the_greatest_of_the_negated():
    assert _places("ArgMin") == (1, ["Neg", "ArgMax", "Cast"], [[3.0]])


def test_the_last_of_equals_is_found_from_behind():
    assert _places("ArgMax", select_last_index=1) == (
        1,
        ["Slice", "ArgMax", "Sub", "Cast"],
        [[2.0]],
    )


def test_the_first_of_equals_stays():
    assert _places("ArgMax") == (0, ["ArgMax", "Cast"], [[1.0]])


@pytest.mark.parametrize(
    ("operator", "weights"),
    [("TopK", {"k": np.array([2])}), ("Gather", {"k": np.array([1])})],
)
def test_axes_are_counted_from_the_front(operator, weights):
    outputs = "y i" if operator == "TopK" else "y"
    model = graph_of(
        [node(operator, "x k", outputs, axis=-1)], {"x": (2, 3, 4)}, weights
    )
    assert apply_pass(canonicalize_argmax_topk, model, 0) == 1
    assert model.graph[0].attributes["axis"].as_int() == 2


def test_what_need_not_be_sorted_is():
    model = graph_of(
        [node("TopK", "x k", "y i", axis=0, sorted=0)],
        {"x": (5,)},
        {"k": np.array([5])},
    )
    assert canonicalize_argmax_topk(model) == 1
    assert model.graph[0].attributes["sorted"].as_int() == 1
