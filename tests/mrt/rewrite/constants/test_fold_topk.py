"""fold_topk: what onnxruntime computes of known numbers."""

import numpy as np
import pytest

from mrt.rewrite.constants.fold_topk import fold_topk
from tests.support.graphs import apply_pass, graph_of, node, operators_of

X = np.array([[3, 1, 3, 2], [0, 5, 4, 5]], np.float32)


@pytest.mark.parametrize("attributes", [{}, {"axis": 0}, {"largest": 0}])
@pytest.mark.parametrize("x", [X, X.astype(np.int64)])
def test_the_first_of_equal_numbers_comes_first(attributes, x):
    nodes = [
        node("TopK", "t k", "v i", **attributes),
        node("Cast", "v", "f", to=1),
        node("Cast", "i", "g", to=1),
        node("Sub", "x f", "d"),
        node("Mul", "d g", "y"),
    ]
    model = graph_of(nodes, {"x": (1, 1)}, {"t": x, "k": np.array([2])})
    assert apply_pass(fold_topk, model) == 1
    assert "TopK" not in operators_of(model)


def test_computed_numbers_are_left_alone():
    nodes = [node("TopK", "x k", "y i")]
    model = graph_of(nodes, {"x": (1, 4)}, {"k": np.array([2])})
    assert fold_topk(model) == 0
