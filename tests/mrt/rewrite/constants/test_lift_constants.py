"""lift_constants: before and after on the smallest graphs, and where it must not apply."""

import numpy as np
import pytest
from onnx import numpy_helper

from mrt.rewrite.constants.lift_constants import lift_constants
from tests.support.graphs import (
    apply_pass,
    constant_named,
    graph_of,
    node,
    operators_of,
)


def test_a_constant_node_is_an_initializer_of_its_name():
    value = numpy_helper.from_array(np.array([1.0, 2.0], np.float32))
    model = graph_of(
        [node("Constant", "", "k", value=value), node("Mul", "x k", "y")],
        {"x": (3, 2)},
    )
    assert apply_pass(lift_constants, model, 0) == 1
    assert operators_of(model) == ["Mul"]
    assert constant_named(model, "k").tolist() == [1.0, 2.0]


@pytest.mark.parametrize(
    ("name", "value"), [("value_float", 2.0), ("value_floats", [2.0])]
)
def test_constants_without_a_tensor(name, value):
    model = graph_of(
        [node("Constant", "", "k", **{name: value}), node("Mul", "x k", "y")],
        {"x": (3, 2)},
    )
    assert apply_pass(lift_constants, model, 0) == 1


def test_a_constant_output_of_the_graph_stays():
    nodes = [
        node("Constant", "", "y", value_floats=[1.0, 2.0]),
        node("Relu", "x", "z"),
    ]
    assert (
        apply_pass(lift_constants, graph_of(nodes, {"x": (2,)}, outputs="y z"))
        == 0
    )
