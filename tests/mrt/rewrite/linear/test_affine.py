"""affine: the scale and shift per channel of a node, and what only looks like such a node."""

import numpy as np
import onnx_ir as ir

from mrt.rewrite.linear import affine
from tests.support.graphs import graph_of, node

X = {"x": (1, 2, 4, 4)}


def test_an_operator_of_another_domain_is_not_read_by_its_name():
    model = graph_of(
        [node("Mul", "x k", "y")], X, {"k": np.float32([[[2.0]], [[3.0]]])}
    )
    item = model.graph[0]
    assert affine.affine_of(item) is not None
    item.domain = "com.example"
    assert affine.affine_of(item) is None


def test_a_variance_that_is_no_vector_is_left_to_the_checker():
    vector = {name: [1.0, 1.0] for name in "gbm"} | {"v": [-1.0, 1.0]}
    norm = node("BatchNormalization", "x g b m v", "y")
    model = graph_of([norm], X, vector)
    assert affine.negative_variance(model.graph[0]) is not None
    scalar = ir.tensor(np.float32(-1.0), name="v")
    model.graph.initializers["v"].const_value = scalar
    assert affine.negative_variance(model.graph[0]) is None
