"""lower_where: before and after on the smallest graphs, and where it must not apply."""

import numpy as np
import pytest

from mrt.rewrite.lower_where import lower_where
from tests.graphs import apply_pass, graph_of, node, operators_of, run

_INPUTS = {"x": (4,), "z": (4,)}
_FEEDS = {"x": np.array([-1.5, 0.0, 0.5, 2.0], np.float32), "z": np.array([-1.5, -1.0, 3.0, 0.5], np.float32)}


def _choice(*condition, weights=None, **options):
    return graph_of([*condition, node("Where", "c x z", "y")], _INPUTS, weights, **options)


def _answer(model):
    assert lower_where(model) == 1
    return run(model, _FEEDS)["y"].tolist()


@pytest.mark.parametrize(
    ("operator", "expected"),
    [
        ("Greater", [-1.5, 0.0, 3.0, 2.0]),
        ("Less", [-1.5, -1.0, 0.5, 0.5]),
        ("GreaterOrEqual", [-1.5, 0.0, 3.0, 2.0]),
        ("LessOrEqual", [-1.5, -1.0, 0.5, 0.5]),
    ],
)
def test_a_choice_by_comparison(operator, expected):
    assert _answer(_choice(node(operator, "x z", "c"))) == expected


@pytest.mark.parametrize(
    ("operator", "expected"),
    [
        ("Greater", [0.0, 0.0, 0.0, 1.0]),
        ("Less", [1.0, 1.0, 0.0, 0.0]),
        ("GreaterOrEqual", [0.0, 0.0, 1.0, 1.0]),
        ("LessOrEqual", [1.0, 1.0, 1.0, 0.0]),
    ],
)
def test_equal_numbers_and_masks_as_numbers(operator, expected):
    nodes = [node(operator, "x half", "c"), node("Cast", "c", "y", to=1)]
    assert _answer(graph_of(nodes, {"x": (4,)}, {"half": np.float32(0.5)})) == expected


@pytest.mark.parametrize(("operator", "expected"), [("And", [-1.5, -1.0, 0.5, 0.5]), ("Or", [-1.5, 0.0, 0.5, 2.0])])
def test_and_or(operator, expected):
    nodes = [node("Greater", "x zero", "a"), node("Less", "x one", "b"), node(operator, "a b", "c")]
    assert _answer(_choice(*nodes, weights={"zero": np.float32(0), "one": np.float32(1)})) == expected


def test_not():
    assert _answer(_choice(node("Greater", "x z", "g"), node("Not", "g", "c"))) == [-1.5, -1.0, 0.5, 0.5]


def test_a_constant_condition():
    model = _choice(weights={"c": np.array([True, False, False, True])})
    assert apply_pass(lower_where, model, 0) == 1
    assert run(model, _FEEDS)["y"].tolist() == [-1.5, -1.0, 3.0, 2.0]


def test_a_branch_of_zeros_costs_nothing():
    nodes = [node("Greater", "x z", "c"), node("Where", "c x zero", "y")]
    model = graph_of(nodes, _INPUTS, {"zero": np.float32(0)})
    assert apply_pass(lower_where, model, 0) == 1
    assert operators_of(model) == ["Sub", "Sign", "Relu", "Mul"]


def test_a_large_branch_does_not_swallow_the_other():
    nodes = [node("Greater", "x z", "c"), node("Where", "c x big", "y")]
    assert _answer(graph_of(nodes, _INPUTS, {"big": np.float32(1e30)})) == [
        np.float32(1e30), 0.0, np.float32(1e30), 2.0,
    ]  # fmt: skip


def test_an_infinite_branch_stays():
    nodes = [node("Greater", "x z", "c"), node("Where", "c x big", "y")]
    assert lower_where(graph_of(nodes, _INPUTS, {"big": np.float32(np.inf)})) == 0


def test_a_condition_that_is_no_comparison_of_floats_stays():
    nodes = [node("Cast", "x", "i", to=7), node("Cast", "z", "j", to=7), node("Less", "i j", "c")]
    assert lower_where(_choice(*nodes)) == 0
    assert lower_where(_choice(node("Cast", "x", "c", to=9))) == 0


def test_a_mask_as_integers_stays():
    nodes = [node("Less", "x z", "c"), node("Cast", "c", "i", to=7), node("Cast", "i", "y", to=1)]
    assert lower_where(graph_of(nodes, _INPUTS)) == 0
