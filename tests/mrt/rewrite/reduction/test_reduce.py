"""canonicalize_reduce: before and after on the smallest graphs, and where it must not apply."""

import numpy as np
import pytest

from mrt.rewrite.reduction.reduce import canonicalize_reduce
from tests.support.graphs import (
    apply_pass,
    constant_named,
    graph_of,
    node,
    operators_of,
)


@pytest.mark.parametrize(
    ("operator", "results"),
    [
        ("ReduceMean", ["ReduceSum", "Mul", "Reshape"]),
        ("ReduceSum", ["ReduceSum", "Reshape"]),
        ("ReduceMax", ["ReduceMax", "Reshape"]),
        ("ReduceL1", ["Abs", "ReduceSum", "Reshape"]),
        ("ReduceL2", ["Mul", "ReduceSum", "Sqrt", "Reshape"]),
        ("ReduceSumSquare", ["Mul", "ReduceSum", "Reshape"]),
    ],
)
def test_every_reduction_is_a_plain_one_and_what_surrounds_it(
    operator, results
):
    model = graph_of(
        [node(operator, "x a", "y", keepdims=0)],
        {"x": (2, 3, 4)},
        {"a": np.array([-1, 1])},
    )
    assert apply_pass(canonicalize_reduce, model) == 1
    assert operators_of(model) == results
    assert constant_named(model, "y.axes").tolist() == [1, 2]


def test_a_mean_multiplies_by_the_inverse_of_the_count():
    model = graph_of(
        [node("ReduceMean", "x a", "y")],
        {"x": (2, 3, 5)},
        {"a": np.array([1, 2])},
    )
    apply_pass(canonicalize_reduce, model)
    assert constant_named(model, "y.inverse_count") == np.float32(1 / 15)


def test_no_axes_are_all_axes():
    model = graph_of([node("ReduceMax", "x", "y")], {"x": (2, 3, 5)})
    apply_pass(canonicalize_reduce, model)
    assert constant_named(model, "y.axes").tolist() == [0, 1, 2]


def test_a_written_reduction_stays():
    model = graph_of(
        [node("ReduceSum", "x a", "y", keepdims=1)],
        {"x": (2, 3, 5)},
        {"a": np.array([1, 2])},
    )
    assert apply_pass(canonicalize_reduce, model) == 0


def test_an_unknown_shape_stays():
    assert (
        canonicalize_reduce(
            graph_of([node("ReduceMean", "x", "y")], {"x": ("n", 3)})
        )
        == 0
    )


def test_axes_are_kept_for_1_alone():
    """As in ONNX: any other number removes them, not 0 alone."""
    model = graph_of(
        [node("ReduceSum", "x a", "y", keepdims=2)],
        {"x": (2, 3, 4)},
        {"a": np.array([1])},
    )
    assert apply_pass(canonicalize_reduce, model) == 1
    assert operators_of(model) == ["ReduceSum", "Reshape"]
