"""remove_reshape_pairs: before and after on the smallest graphs, and where it must not apply."""

import numpy as np
import pytest

from mrt.rewrite.movement.remove_reshape_pairs import remove_reshape_pairs
from tests.support.graphs import (
    apply_pass,
    constant_named,
    graph_of,
    node,
    operators_of,
)

_SHAPES = {
    "flat": np.array([6, 4]),
    "back": np.array([2, 3, 4]),
    "mixed": np.array([4, 6]),
}


def _pair(middle, to="flat", back="back"):
    nodes = [
        node("Reshape", f"x {to}", "a"),
        middle,
        node("Reshape", f"b {back}", "y"),
    ]
    return graph_of(
        nodes,
        {"x": (2, 3, 4)},
        {**_SHAPES, "k": 0.5, "vector": [1.0, 2.0, 3.0, 4.0]},
    )


@pytest.mark.parametrize(
    "middle",
    [
        node("Softmax", "a", "b", axis=1),
        node("Relu", "a", "b"),
        node("Mul", "a k", "b"),
    ],
    ids=lambda n: n.op_type,
)
def test_rows_and_elements_do_not_care(middle):
    model = _pair(middle)
    assert apply_pass(remove_reshape_pairs, model) == 1
    assert operators_of(model) == [middle.op_type]


def test_a_softmax_keeps_to_the_last_axis():
    model = _pair(node("Softmax", "a", "b", axis=1))
    apply_pass(remove_reshape_pairs, model)
    assert model.graph[0].attributes["axis"].as_int() == 2


@pytest.mark.parametrize(
    ("middle", "to"),
    [
        (node("Softmax", "a", "b", axis=0), "flat"),
        (node("Softmax", "a", "b", axis=1), "mixed"),
        (node("Mul", "a vector", "b"), "flat"),
    ],
)
def test_what_looks_across_rows_stays(middle, to):
    assert apply_pass(remove_reshape_pairs, _pair(middle, to)) == 0


def test_a_pair_that_ends_in_another_shape_stays():
    assert (
        apply_pass(
            remove_reshape_pairs, _pair(node("Relu", "a", "b"), "flat", "mixed")
        )
        == 0
    )


def test_a_pair_that_is_read_in_between_stays():
    nodes = [
        node("Reshape", "x flat", "a"),
        node("Relu", "a", "b"),
        node("Reshape", "b back", "y"),
    ]
    model = graph_of(nodes, {"x": (2, 3, 4)}, _SHAPES, outputs="y a")
    assert apply_pass(remove_reshape_pairs, model) == 0
    assert constant_named(model, "flat").tolist() == [6, 4]
