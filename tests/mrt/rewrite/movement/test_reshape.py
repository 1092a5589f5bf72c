"""canonicalize_reshape: before and after on the smallest graphs, and where it must not apply."""

import numpy as np
import pytest

from mrt.rewrite.movement.reshape import canonicalize_reshape
from tests.support.graphs import (
    apply_pass,
    constant_named,
    graph_of,
    node,
    operators_of,
)


@pytest.mark.parametrize(
    ("regroup", "weights", "shape"),
    [
        (node("Flatten", "x", "y", axis=2), {}, [6, 4]),
        (node("Flatten", "x", "y", axis=0), {}, [1, 24]),
        (node("Squeeze", "x", "y"), {}, [2, 3, 4]),
        (
            node("Unsqueeze", "x a", "y"),
            {"a": np.array([0, -1])},
            [1, 2, 3, 1, 4, 1],
        ),
        (node("Reshape", "x s", "y"), {"s": np.array([0, -1, 2])}, [2, 6, 2]),
    ],
)
def test_regrouping_becomes_a_reshape_with_the_whole_shape(
    regroup, weights, shape
):
    model = graph_of([regroup], {"x": (2, 3, 1, 4)}, weights)
    assert apply_pass(canonicalize_reshape, model) == 1
    assert operators_of(model) == ["Reshape"]
    assert (
        constant_named(model, model.graph[0].inputs[1].name).tolist() == shape
    )


def test_a_reshape_of_a_reshape_is_one():
    nodes = [node("Flatten", "x", "a"), node("Unsqueeze", "a one", "y")]
    model = graph_of(nodes, {"x": (2, 3, 4)}, {"one": np.array([1])})
    apply_pass(canonicalize_reshape, model)
    apply_pass(canonicalize_reshape, model)
    assert operators_of(model) == ["Reshape"]
    assert model.graph[0].inputs[0].name == "x"


def test_a_written_reshape_stays():
    model = graph_of(
        [node("Reshape", "x s", "y")], {"x": (2, 3)}, {"s": np.array([3, 2])}
    )
    assert apply_pass(canonicalize_reshape, model) == 0


def test_an_unknown_shape_stays():
    assert (
        canonicalize_reshape(
            graph_of([node("Flatten", "x", "y")], {"x": ("n", 3, 4)})
        )
        == 0
    )
