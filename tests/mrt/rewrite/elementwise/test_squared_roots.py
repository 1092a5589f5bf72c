"""fold_squared_roots: before and after on the smallest graphs, and where it must not apply."""

import numpy as np

from mrt.rewrite.elementwise.squared_roots import fold_squared_roots
from tests.support.graphs import apply_pass, graph_of, node, operators_of

INPUT = {"x": (2, 3)}


def test_the_square_of_a_root_is_the_radicand():
    nodes = [
        node("Exp", "x", "e"),
        node("Sqrt", "e", "r"),
        node("Mul", "r r", "s"),
        node("Log", "s", "y"),
    ]
    model = graph_of(nodes, INPUT)
    assert apply_pass(fold_squared_roots, model) == 1
    assert operators_of(model) == ["Exp", "Log"]


def test_a_movement_in_between_moves_the_radicand():
    nodes = [
        node("Exp", "x", "e"),
        node("Sqrt", "e", "r"),
        node("Transpose", "r", "t", perm=[1, 0]),
        node("Reshape", "t k", "m"),
        node("Mul", "m m", "y"),
    ]
    model = graph_of(nodes, INPUT, {"k": np.array([6])})
    assert apply_pass(fold_squared_roots, model) == 1
    assert operators_of(model) == ["Exp", "Transpose", "Reshape"]


def test_a_product_of_two_roots_stays():
    nodes = [
        node("Exp", "x", "e"),
        node("Sqrt", "e", "r"),
        node("Sqrt", "x", "q"),
        node("Mul", "r q", "y"),
    ]
    assert fold_squared_roots(graph_of(nodes, INPUT)) == 0


def test_the_square_of_anything_else_stays():
    nodes = [node("Exp", "x", "e"), node("Mul", "e e", "y")]
    assert fold_squared_roots(graph_of(nodes, INPUT)) == 0
