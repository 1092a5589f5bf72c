"""lower_div: before and after on the smallest graphs, and where it must not apply."""

import numpy as np
import pytest

from mrt.rewrite.elementwise.div import lower_div
from tests.support.graphs import (
    apply_pass,
    constant_named,
    graph_of,
    node,
    operators_of,
)


def test_division_by_a_constant_multiplies_by_its_inverse():
    model = graph_of(
        [node("Div", "x k", "y")], {"x": (2, 3)}, {"k": [3.0, -0.5, 7.0]}
    )
    assert apply_pass(lower_div, model) == 1
    assert operators_of(model) == ["Mul"]
    assert constant_named(model, "y.inverse").tolist() == [
        np.float32(1 / 3),
        -2.0,
        np.float32(1 / 7),
    ]


def test_division_by_a_computed_value_stays():
    model = graph_of(
        [node("Exp", "z", "e"), node("Div", "x e", "y")],
        {"x": (2, 3), "z": (2, 1)},
    )
    assert apply_pass(lower_div, model) == 0


def test_a_scalar_over_a_computed_value_stays():
    assert (
        apply_pass(
            lower_div,
            graph_of([node("Div", "k x", "y")], {"x": (2, 3)}, {"k": 2.0}),
        )
        == 0
    )


@pytest.mark.parametrize("divisor", [0.0, 1e-40])
def test_a_divisor_without_a_finite_inverse_stays(divisor):
    assert (
        lower_div(
            graph_of([node("Div", "x k", "y")], {"x": (2, 3)}, {"k": divisor})
        )
        == 0
    )


def test_a_quotient_that_is_cut_to_an_integer_stays():
    """The rounding of 1/k could change the integer; what only adds to the quotient cannot see it."""
    nodes = [node("Div", "x k", "q"), node("Cast", "q", "y", to=7)]
    cut = graph_of(nodes, {"x": (2, 3)}, {"k": 3.0})
    assert apply_pass(lower_div, cut) == 0
    nodes = [node("Div", "x k", "q"), node("Add", "q q", "y")]
    added = graph_of(nodes, {"x": (2, 3)}, {"k": 3.0})
    assert apply_pass(lower_div, added) == 1


def test_a_quotient_that_is_cut_is_divided_in_its_own_shape():
    """Once a divisor of more axes than x was met by a rule for two computed operands: KeyError."""
    nodes = [node("Div", "x k", "d"), node("Floor", "d", "y")]
    divisor = {"k": np.full((1, 1, 1), 3, np.float32)}
    model = graph_of(nodes, {"x": (2, 3)}, divisor)
    assert apply_pass(lower_div, model) == 1
    assert operators_of(model) == ["Reshape", "Div", "Floor"]
    assert apply_pass(lower_div, model) == 0


def test_a_division_that_stays_does_not_end_the_pass():
    nodes = [
        node("Cast", "x", "n", to=7),
        node("Div", "n m", "i"),
        node("Cast", "i", "f", to=1),
        node("Div", "x k", "q"),
        node("Add", "f q", "y"),
    ]
    constants = {"m": np.array([3]), "k": [3.0]}
    model = graph_of(nodes, {"x": (2, 3)}, constants)
    assert apply_pass(lower_div, model) == 1


def test_a_number_over_itself_is_one():
    nodes = [node("Div", "x x", "one"), node("Add", "x one", "y")]
    model = graph_of(nodes, {"x": (2, 3)})
    assert apply_pass(lower_div, model) == 1
    assert operators_of(model) == ["Add"]
    assert constant_named(model, "one").tolist() == [[1.0] * 3] * 2
