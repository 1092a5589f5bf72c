"""lower_is_nan: comparisons find NaN and infinities where onnxruntime does."""

import numpy as np
import pytest

from mrt.graph.infer_shapes import infer_shapes
from mrt.rewrite import rewrite
from mrt.rewrite.elementwise.is_nan import lower_is_nan
from mrt.rewrite.elementwise.sign_infinities import sign_infinities
from tests.support.graphs import graph_of, node, operators_of, run

X = np.array([[-2, -1, 0, 1, 0, 3], [0, 0, 0, 2, -1, 1]], np.float32)
OTHER = np.array([[0, 1, 0, 0, 2, 3], [0, 0, -1, 0, 1, 0]], np.float32)
NUMBERS = {
    "zero": np.float32(0),
    "mask": np.array([0, 1, 0, 1, 0, 1], np.float32),
    "k": np.array([0.5, -1.5, 2, -2, 0, 1.5], np.float32),
}
CASES = {
    "quotient": [node("Div", "x z", "v")],
    "quotient of itself": [node("Div", "x x", "v")],
    "quotient by a constant": [node("Div", "x mask", "v")],
    "reciprocal": [node("Reciprocal", "x", "v")],
    "logarithm": [node("Log", "x", "v")],
    "root": [node("Sqrt", "x", "v")],
    "power": [node("Pow", "x k", "v")],
    "product with 0": [node("Log", "x", "l"), node("Mul", "l mask", "v")],
    "product of two": [node("Log", "x", "l"), node("Mul", "l z", "v")],
    "sum": [node("Div", "x z", "q"), node("Log", "x", "l"), node("Neg", "l", "m"), node("Abs", "q", "p"), node("Add", "m p", "v")],
    "choice": [node("Log", "x", "l"), node("Greater", "z zero", "c"), node("Where", "c l z", "v")],
    "other choice": [node("Log", "x", "l"), node("Greater", "z zero", "c"), node("Where", "c z l", "v")],
    "behind a sigmoid": [node("Sqrt", "x", "r"), node("Sigmoid", "r", "v")],
}  # fmt: skip


def asked(name, operator):
    """A model that says where a value is not a number, and its answer for X and OTHER."""
    nodes = [
        *CASES[name],
        node(operator, "v", "b"),
        node("Cast", "b", "y", to=1),
    ]
    model = graph_of(nodes, {"x": X.shape, "z": X.shape}, NUMBERS)
    infer_shapes(model)
    return model, run(model, {"x": X, "z": OTHER})["y"]


@pytest.mark.parametrize("operator", ["IsNaN", "IsInf"])
@pytest.mark.parametrize("name", CASES)
def test_what_is_no_number_is_found(name, operator):
    model, expected = asked(name, operator)
    changed = lower_is_nan(model)
    found = run(model, {"x": X, "z": OTHER})["y"]
    assert (operator in operators_of(model)) == (not changed)
    assert changed or not expected.any()
    assert not changed or np.array_equal(found, expected)


@pytest.mark.parametrize("name", CASES)
def test_what_does_not_equal_itself_is_no_number(name):
    nodes = [
        *CASES[name],
        node("Equal", "v v", "b"),
        node("Cast", "b", "y", to=1),
    ]
    model = graph_of(nodes, {"x": X.shape, "z": X.shape}, NUMBERS)
    expected = run(model, {"x": X, "z": OTHER})["y"]
    infer_shapes(model)
    assert lower_is_nan(model)
    infer_shapes(model)
    assert np.array_equal(run(model, {"x": X, "z": OTHER})["y"], expected)


def test_a_guard_of_inputs_that_do_not_equal_themselves_goes_away():
    nodes = [
        node("Equal", "x x", "e"),
        node("Not", "e", "b"),
        node("Abs", "x", "a"),
        node("Where", "b nan a", "y"),
    ]
    model = graph_of(nodes, {"x": (2, 6)}, {"nan": np.float32(np.nan)})
    rewrite(model)
    assert operators_of(model) == ["Abs"]


def test_inputs_and_what_is_computed_otherwise_are_numbers():
    nodes = [
        node("IsNaN", "x", "b"),
        node("Softmax", "x", "s"),
        node("IsNaN", "s", "c"),
        node("Or", "b c", "d"),
        node("Cast", "d", "y", to=1),
    ]
    assert lower_is_nan(graph_of(nodes, {"x": (1, 3)})) == 0


def test_nothing_divided_by_nothing_is_replaced_as_the_model_says():
    """The quotient itself stays; what is chosen is the same as in float."""
    nodes = [
        node("Div", "x z", "v"),
        node("IsNaN", "v", "b"),
        node("Where", "b zero v", "w"),
        node("Relu", "w", "y"),
    ]
    feeds = {
        "x": np.array([[0, 0, -2, 3]], np.float32),
        "z": np.array([[0, 5, -4, 2]], np.float32),
    }
    model = graph_of(nodes, {"x": (1, 4), "z": (1, 4)}, NUMBERS)
    expected = run(model, feeds)["y"]
    rewrite(model)
    assert "IsNaN" not in operators_of(model)
    assert np.array_equal(run(model, feeds)["y"], expected)


@pytest.mark.parametrize("operands", ["{far} v", "v {far}"])
@pytest.mark.parametrize("length", [98, 99, 100, 300])
def test_what_is_near_is_found_beside_a_long_way_to_it(length, operands):
    chain = [
        node("Add", f"{f'a{place - 1}' if place else 'v'} k", f"a{place}")
        for place in range(length)
    ]
    nodes = [
        node("Sqrt", "x", "v"),
        *chain,
        node("Add", operands.format(far=f"a{length - 1}"), "s"),
        node("IsNaN", "s", "b"),
        node("Cast", "b", "y", to=1),
    ]
    model = graph_of(nodes, {"x": X.shape}, {"k": NUMBERS["k"]})
    infer_shapes(model)
    expected = run(model, {"x": X})["y"]
    assert lower_is_nan(model) == 1
    assert np.array_equal(run(model, {"x": X})["y"], expected)


def test_asking_for_the_sign_of_an_infinity_adds_nothing():
    nodes = [
        node("Pow", "x k", "p"),
        node("Div", "p z", "q"),
        node("Less", "q zero", "l"),
        node("IsInf", "q", "i"),
        node("And", "l i", "b"),
        node("Cast", "b", "y", to=1),
    ]
    model = graph_of(nodes, {"x": X.shape, "z": X.shape}, NUMBERS)
    infer_shapes(model)
    before = operators_of(model)
    assert sign_infinities(model) == 0
    assert operators_of(model) == before
