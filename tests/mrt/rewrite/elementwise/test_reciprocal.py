"""canonicalize_reciprocal: before and after on the smallest graphs, and where it must not apply."""

import numpy as np
import pytest

from mrt.rewrite.elementwise.reciprocal import canonicalize_reciprocal
from tests.support.graphs import apply_pass, graph_of, node, operators_of

PAIR = {"x": (2, 3), "z": (2, 1)}


@pytest.mark.parametrize("operands", ["x r", "r x"])
def test_a_product_with_a_reciprocal_is_a_quotient(operands):
    model = graph_of(
        [
            node("Exp", "z", "e"),
            node("Reciprocal", "e", "r"),
            node("Mul", operands, "y"),
        ],
        PAIR,
    )
    assert apply_pass(canonicalize_reciprocal, model) == 1
    assert operators_of(model) == ["Exp", "Div"]


def test_a_constant_in_between_goes_behind():
    nodes = [
        node("Exp", "z", "e"),
        node("Reciprocal", "e", "r"),
        node("Mul", "r k", "q"),
        node("Mul", "x q", "y"),
    ]
    model = graph_of(nodes, PAIR, {"k": [1.0, 2.0, 3.0]})
    assert apply_pass(canonicalize_reciprocal, model) == 1
    assert operators_of(model) == ["Exp", "Div", "Mul"]


def test_a_reciprocal_times_a_constant_stays():
    nodes = [
        node("Exp", "x", "e"),
        node("Reciprocal", "e", "r"),
        node("Mul", "r k", "y"),
    ]
    assert canonicalize_reciprocal(graph_of(nodes, PAIR, {"k": 2.0})) == 0


@pytest.mark.parametrize(
    ("exponent", "operators"),
    [
        (2.0, ["Mul"]),
        (1.0, ["Mul"]),
        (0.5, ["Sqrt"]),
        (-1.0, ["Reciprocal"]),
        (-0.5, ["Sqrt", "Reciprocal"]),
    ],
)
def test_powers_with_an_operator_of_their_own(exponent, operators):
    model = graph_of(
        [node("Exp", "x", "e"), node("Pow", "e k", "y")], PAIR, {"k": exponent}
    )
    assert apply_pass(canonicalize_reciprocal, model) == 1
    assert operators_of(model) == ["Exp", *operators]


@pytest.mark.parametrize(
    "exponent",
    [
        3.0,
        np.array([2.0, 3.0, 4.0], np.float32),
        np.full((1, 1, 1), 2, np.float32),
    ],
)
def test_other_powers_stay(exponent):
    assert (
        canonicalize_reciprocal(
            graph_of([node("Pow", "x k", "y")], PAIR, {"k": exponent})
        )
        == 0
    )
