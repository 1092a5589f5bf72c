"""lower_conv1d: before and after on the smallest graphs, and where it must not apply."""

import numpy as np
import pytest

from mrt.graph.values import ints_attribute
from mrt.rewrite.linear.conv1d import lower_conv1d
from mrt.rewrite.linear.conv_pool_attributes import (
    canonicalize_conv_pool_attributes,
)
from tests.support.graphs import (
    apply_pass,
    constant_named,
    graph_of,
    node,
    operators_of,
)

_W = np.arange(24, dtype=np.float32).reshape(4, 3, 2)


@pytest.mark.parametrize(
    ("one", "weights"),
    [
        (node("Conv", "x w", "y", pads=[1, 2], strides=[2]), {"w": _W}),
        (
            node("ConvTranspose", "x w", "y", strides=[2], output_padding=[1]),
            {"w": _W.reshape(3, 4, 2)},
        ),
        (node("MaxPool", "x", "y", kernel_shape=[3], pads=[1, 1]), {}),
        (node("AveragePool", "x", "y", kernel_shape=[3], pads=[1, 1]), {}),
    ],
    ids=lambda item: getattr(item, "op_type", ""),
)
def test_a_row_is_an_image_of_width_one(one, weights):
    model = graph_of([one], {"x": (2, 3, 9)}, weights)
    canonicalize_conv_pool_attributes(model)
    assert apply_pass(lower_conv1d, model) == 1
    assert operators_of(model) == ["Reshape", one.op_type, "Reshape"]
    assert len(ints_attribute(model.graph[1], "pads")) == 4
    assert constant_named(model, "y.tall").tolist() == [2, 3, 9, 1]


def test_two_dimensions_stay():
    model = graph_of(
        [node("MaxPool", "x", "y", kernel_shape=[2, 2])], {"x": (1, 1, 4, 4)}
    )
    canonicalize_conv_pool_attributes(model)
    assert apply_pass(lower_conv1d, model) == 0


def test_what_stays_is_passed_over():
    """Two dimensions, and computed weights, in front of a row."""
    nodes = [
        node("MaxPool", "image", "p", kernel_shape=[2, 2]),
        node("Conv", "x v", "c"),
        node("Conv", "x w", "y"),
    ]
    shapes = {"image": (1, 1, 4, 4), "x": (2, 3, 9), "v": (4, 3, 2)}
    model = graph_of(nodes, shapes, {"w": _W})
    canonicalize_conv_pool_attributes(model)
    assert lower_conv1d(model) == 1
    assert operators_of(model) == [
        "MaxPool",
        "Conv",
        "Reshape",
        "Conv",
        "Reshape",
    ]
