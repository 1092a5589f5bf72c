"""lower_reduce_prod: before and after on the smallest graphs, and where it must not apply."""

import numpy as np
import pytest

from mrt.rewrite.reduction.reduce_prod import MOST_FACTORS, lower_reduce_prod
from tests.support.graphs import apply_pass, graph_of, node, operators_of


@pytest.mark.parametrize(
    ("size", "products"), [(1, 0), (2, 1), (3, 2), (7, 4), (8, 3)]
)
def test_an_axis_is_halved_until_one_entry_is_left(size, products):
    model = graph_of(
        [node("ReduceProd", "x a", "y", keepdims=0)],
        {"x": (2, size)},
        {"a": np.array([1])},
    )
    assert apply_pass(lower_reduce_prod, model) == 1
    assert operators_of(model).count("Mul") == products


def test_several_axes():
    model = graph_of(
        [node("ReduceProd", "x a", "y")],
        {"x": (2, 3, 4)},
        {"a": np.array([0, 2])},
    )
    assert apply_pass(lower_reduce_prod, model) == 1


def test_too_many_factors_stay():
    nodes = [node("ReduceProd", "x a", "y")]
    assert (
        lower_reduce_prod(
            graph_of(nodes, {"x": (2, MOST_FACTORS + 1)}, {"a": np.array([1])})
        )
        == 0
    )
