"""lower_leaky_relu: before and after on the smallest graphs, and where it must not apply."""

import pytest

from mrt.rewrite.elementwise.leaky_relu import lower_leaky_relu
from tests.support.graphs import (
    apply_pass,
    constant_named,
    graph_of,
    node,
    operators_of,
)


def test_leaky_relu_is_relu_minus_slope_times_relu_of_minus_x():
    model = graph_of([node("LeakyRelu", "x", "y", alpha=0.25)], {"x": (2, 3)})
    assert apply_pass(lower_leaky_relu, model) == 1
    assert operators_of(model) == ["Mul", "Relu", "Mul", "Relu", "Sub"]
    assert constant_named(model, "y.slope") == 0.25


def test_a_slope_per_channel():
    model = graph_of(
        [node("PRelu", "x s", "y")],
        {"x": (2, 3, 4)},
        {"s": [[0.5], [-1.0], [2.0]]},
    )
    assert apply_pass(lower_leaky_relu, model) == 1
    assert constant_named(model, "y.slope").tolist() == [[0.5], [-1.0], [2.0]]


def test_a_computed_slope_stays():
    assert (
        apply_pass(
            lower_leaky_relu,
            graph_of([node("PRelu", "x s", "y")], {"x": (2, 3), "s": (3,)}),
        )
        == 0
    )


@pytest.mark.parametrize("operator", ["Relu", "Elu"])
def test_other_functions_stay(operator):
    assert (
        apply_pass(
            lower_leaky_relu,
            graph_of([node(operator, "x", "y")], {"x": (2, 3)}),
        )
        == 0
    )
