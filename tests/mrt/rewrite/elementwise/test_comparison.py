"""canonicalize_comparison: constants stand second, Xor is gone."""

import numpy as np
import pytest

from mrt.rewrite.elementwise.comparison import canonicalize_comparison
from tests.support.graphs import apply_pass, graph_of, node, operators_of


@pytest.mark.parametrize(
    ("operator", "mirrored"),
    [
        ("Greater", "Less"),
        ("GreaterOrEqual", "LessOrEqual"),
        ("Less", "Greater"),
        ("Equal", "Equal"),
    ],
)
def test_a_constant_on_the_left_changes_sides(operator, mirrored):
    nodes = [node(operator, "k x", "c"), node("Cast", "c", "y", to=1)]
    model = graph_of(nodes, {"x": (3,)}, {"k": np.float32(0.2)})
    assert apply_pass(canonicalize_comparison, model, 0) == 1
    assert operators_of(model) == [mirrored, "Cast"]
    assert model.graph[0].inputs[0].name == "x"


def test_a_constant_on_the_right_stays():
    nodes = [node("Greater", "x k", "c"), node("Cast", "c", "y", to=1)]
    assert (
        apply_pass(
            canonicalize_comparison,
            graph_of(nodes, {"x": (3,)}, {"k": np.float32(0.2)}),
            0,
        )
        == 0
    )


def test_exclusive_or():
    nodes = [
        node("Greater", "x z", "a"),
        node("Less", "x k", "b"),
        node("Xor", "a b", "c"),
        node("Cast", "c", "y", to=1),
    ]
    model = graph_of(nodes, {"x": (9,), "z": (9,)}, {"k": np.float32(0.2)})
    assert apply_pass(canonicalize_comparison, model, 0) == 1
    assert operators_of(model) == [
        "Greater",
        "Less",
        "And",
        "Or",
        "Not",
        "And",
        "Cast",
    ]
