"""Quotients of integers that files compute in floats, and what only looks like one."""

import numpy as np
import pytest
from onnx import TensorProto

from mrt.rewrite import rewrite
from mrt.rewrite.elementwise.float_quotients import divide_as_integers
from tests.support.graphs import node, operators_of, run
from tests.support.integers import X, model_with, same_numbers

AS_FLOAT = [node("Cast", "x", "xf", to=1), node("Div", "xf f", "q")]
TRUNCATED = [
    node("Abs", "q", "a"),
    node("Floor", "a", "whole"),
    node("Sign", "q", "s"),
    node("Mul", "whole s", "y"),
]


@pytest.mark.parametrize(
    "nodes",
    [
        [*AS_FLOAT, node("Floor", "q", "y")],
        [*AS_FLOAT, node("Cast", "q", "y", to=6)],
        [*AS_FLOAT, *TRUNCATED],
        [node("Cast", "x", "xf", to=1), node("Cast", "xf", "y", to=6)],
    ],
)
def test_integers_are_divided_as_integers(nodes):
    assert same_numbers(nodes, divide_as_integers) == 1


@pytest.mark.parametrize(
    "nodes",
    [
        [node("Cast", "x", "xf", to=1), node("Div", "xf half", "q"), node("Floor", "q", "y")],
        [node("Cast", "x", "xf", to=1), node("Mul", "xf f", "q"), node("Floor", "q", "y")],
        [*AS_FLOAT, node("Round", "q", "y")],
        [*AS_FLOAT, node("Cast", "q", "y", to=9)],
        [*AS_FLOAT, node("Abs", "xf", "a"), *TRUNCATED[1:]],
        [node("Cast", "columns", "xf", to=1), node("Cast", "x", "g", to=1), node("Div", "xf g", "q"),
         node("Floor", "q", "y")],
    ],
)  # fmt: skip
def test_what_is_no_rounded_quotient_by_a_positive_integer_stays(nodes):
    assert same_numbers(nodes, divide_as_integers) == 0


@pytest.mark.parametrize("n", [1, 3, 7, 49, 60, 3600, 8191, 2**23 + 1])
def test_float32_divides_integers_of_24_bits_as_integers(n):
    """Next to the multiples of n, where float32 is closest to being wrong."""
    most = 2**24 - 1
    multiples = np.unique(np.linspace(0, most // n, 4096).astype(np.int64)) * n
    x = np.concatenate([multiples - 1, multiples, multiples + 1])
    x = np.concatenate([x, -x])
    quotients = np.floor(x.astype(np.float32) / np.float32(n))
    assert np.array_equal(quotients, x // n)


@pytest.mark.parametrize(
    ("kind", "dtype"),
    [(TensorProto.INT32, np.int32), (TensorProto.INT64, np.int64)],
)
def test_what_a_quotient_in_floats_leaves_is_one_remainder(kind, dtype):
    nodes = [
        *AS_FLOAT,
        node("Floor", "q", "w"),
        node("Cast", "w", "d", to=kind),
        node("Mul", "d n", "m"),
        node("Sub", "x m", "y"),
    ]
    model = model_with(nodes, kind, dtype)
    rewrite(model)
    assert set(operators_of(model)) <= {"Cast", "Mod"}
    answer = run(model, {"x": X.astype(dtype)})["y"]
    assert answer.dtype == dtype
    assert answer.tolist() == (X % 60).tolist()
