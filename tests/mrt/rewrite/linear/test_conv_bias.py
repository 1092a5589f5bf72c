"""add_conv_bias: before and after on the smallest graphs, and where it must not apply."""

import numpy as np
import pytest

from mrt.rewrite.linear.conv_bias import add_conv_bias
from tests.support.graphs import (
    apply_pass,
    constant_named,
    graph_of,
    node,
    operators_of,
)


@pytest.mark.parametrize(
    ("operator", "group", "outputs"),
    [("Conv", 1, 4), ("Conv", 2, 4), ("ConvTranspose", 2, 4)],
)
def test_a_missing_bias_is_zero(operator, group, outputs):
    shape = (4, 4 // group, 1, 1) if operator == "Conv" else (4, 2, 1, 1)
    conv = node(operator, "x w", "y", group=group)
    model = graph_of(
        [conv], {"x": (1, 4, 3, 3)}, {"w": np.ones(shape, np.float32)}
    )
    assert apply_pass(add_conv_bias, model) == 1
    assert constant_named(model, "y.bias").tolist() == [0.0] * outputs
    assert operators_of(model) == [operator]


def test_a_bias_stays():
    weights = {"w": np.ones((2, 1, 1, 1), np.float32), "b": [1.0, 2.0]}
    assert (
        apply_pass(
            add_conv_bias,
            graph_of(
                [node("Conv", "x w b", "y")], {"x": (1, 1, 3, 3)}, weights
            ),
        )
        == 0
    )


def test_computed_weights_stay():
    model = graph_of(
        [node("Conv", "x w", "y")], {"x": (1, 1, 3, 3), "w": (2, 1, 1, 1)}
    )
    assert apply_pass(add_conv_bias, model) == 0
