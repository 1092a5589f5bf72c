"""canonicalize_binary: before and after on the smallest graphs, and where it must not apply."""

import numpy as np
import onnx
import pytest

from mrt.rewrite.elementwise.binary import canonicalize_binary
from tests.support.graphs import (
    apply_pass,
    constant_named,
    graph_of,
    node,
    operators_of,
)


@pytest.mark.parametrize(
    ("operator", "result"), [("Sum", "Add"), ("Max", "Max"), ("Min", "Min")]
)
def test_three_operands_become_two_and_two(operator, result):
    model = graph_of(
        [node(operator, "a b c", "y")], {"a": (2, 3), "b": (3,), "c": (2, 1)}
    )
    assert apply_pass(canonicalize_binary, model) == 1
    assert operators_of(model) == [result, result]


def test_a_mean_is_a_sum_and_a_factor():
    model = graph_of(
        [node("Mean", "a b c", "y")], {"a": (2, 3), "b": (3,), "c": (2, 1)}
    )
    assert apply_pass(canonicalize_binary, model) == 1
    assert operators_of(model) == ["Add", "Add", "Mul"]
    assert constant_named(model, "y.inverse_count") == np.float32(1 / 3)


@pytest.mark.parametrize("operator", ["Add", "Mul", "Max", "Min"])
def test_a_constant_goes_second(operator):
    model = graph_of([node(operator, "k x", "y")], {"x": (2, 3)}, {"k": 0.5})
    assert apply_pass(canonicalize_binary, model) == 1
    assert [value.name for value in model.graph[0].inputs] == ["x", "k"]


def test_x_minus_a_constant_adds_its_negative():
    model = graph_of([node("Sub", "x k", "y")], {"x": (2, 3)}, {"k": 0.5})
    assert apply_pass(canonicalize_binary, model) == 1
    assert operators_of(model) == ["Add"]
    assert constant_named(model, "y.negated") == -0.5


def test_a_constant_minus_x_turns_the_sign_first():
    model = graph_of([node("Sub", "k x", "y")], {"x": (2, 3)}, {"k": 0.5})
    assert apply_pass(canonicalize_binary, model) == 1
    assert operators_of(model) == ["Mul", "Add"]


@pytest.mark.parametrize("operator", ["Add", "Sub", "Mul", "Max", "Min"])
def test_two_computed_operands_stay(operator):
    assert (
        apply_pass(
            canonicalize_binary,
            graph_of([node(operator, "a b", "y")], {"a": (2, 3), "b": (3,)}),
        )
        == 0
    )


def test_a_constant_that_is_second_stays():
    assert (
        apply_pass(
            canonicalize_binary,
            graph_of([node("Mul", "x k", "y")], {"x": (2, 3)}, {"k": 0.5}),
        )
        == 0
    )


def test_an_unsigned_constant_minus_x_stays():
    model = graph_of(
        [node("Sub", "k x", "y")],
        {"x": (2, 3)},
        {"k": np.array(255, np.uint8)},
        kind=onnx.TensorProto.UINT8,
    )
    assert canonicalize_binary(model) == 0


def test_an_unsigned_constant_goes_second():
    model = graph_of(
        [node("Add", "k x", "y")],
        {"x": (2, 3)},
        {"k": np.array(1, np.uint8)},
        kind=onnx.TensorProto.UINT8,
    )
    assert canonicalize_binary(model) == 1
    assert [value.name for value in model.graph[0].inputs] == ["x", "k"]
