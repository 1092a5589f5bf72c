"""fuse_pad: before and after on the smallest graphs, and where it must not apply."""

import numpy as np
import pytest

from mrt.graph.values import ints_attribute
from mrt.rewrite.linear.conv_pool_attributes import (
    canonicalize_conv_pool_attributes,
)
from mrt.rewrite.linear.fuse_pad import fuse_pad
from tests.support.graphs import (
    apply_pass,
    constant_named,
    graph_of,
    node,
    operators_of,
)


def _padded(pads=(0, 0, 1, 2, 0, 0, 3, 0), value=0.0, **attributes):
    nodes = [
        node("Pad", "x p v", "a"),
        node("Conv", "a w", "y", pads=[1, 1, 1, 1], **attributes),
    ]
    weights = {
        "p": np.array(pads),
        "v": value,
        "w": np.ones((2, 3, 3, 3), np.float32),
    }
    model = graph_of(nodes, {"x": (1, 3, 6, 6)}, weights)
    canonicalize_conv_pool_attributes(model)
    return model


def test_zeros_around_an_image_become_the_convolutions_own():
    model = _padded()
    assert apply_pass(fuse_pad, model) == 1
    assert operators_of(model) == ["Conv"]
    assert ints_attribute(model.graph[0], "pads") == (2, 3, 4, 1)


@pytest.mark.parametrize(
    ("pads", "value"),
    [
        ((0, 0, 1, 1, 0, 0, 1, 1), 0.5),
        ((1, 0, 1, 1, 0, 0, 1, 1), 0.0),
        ((0, 0, -1, 1, 0, 0, 1, 1), 0.0),
    ],
)
def test_other_values_axes_and_cuts_stay(pads, value):
    assert apply_pass(fuse_pad, _padded(pads, value)) == 0


def _pooled(before):
    nodes = [
        node(before, "x", "r"),
        node("Pad", "r p", "a"),
        node("MaxPool", "a", "y", kernel_shape=[3, 3], strides=[2, 2]),
    ]
    model = graph_of(
        nodes, {"x": (1, 3, 6, 6)}, {"p": np.array([0, 0, 1, 1, 0, 0, 1, 1])}
    )
    canonicalize_conv_pool_attributes(model)
    return model


def test_behind_a_relu_zeros_never_win_a_max():
    model = _pooled("Relu")
    assert apply_pass(fuse_pad, model, 0) == 1
    assert operators_of(model) == ["Relu", "MaxPool"]


def test_zeros_that_may_win_a_max_stay():
    assert apply_pass(fuse_pad, _pooled("Tanh")) == 0


def test_padding_as_wide_as_the_window_stays():
    nodes = [
        node("Relu", "x", "r"),
        node("Pad", "r p", "a"),
        node("MaxPool", "a", "y", kernel_shape=[2, 2]),
    ]
    model = graph_of(
        nodes, {"x": (1, 3, 6, 6)}, {"p": np.array([0, 0, 2, 0, 0, 0, 0, 0])}
    )
    canonicalize_conv_pool_attributes(model)
    assert apply_pass(fuse_pad, model) == 0
    assert constant_named(model, "p").tolist() == [0, 0, 2, 0, 0, 0, 0, 0]


def test_a_convolution_without_a_pad_does_not_end_the_pass():
    nodes = [
        node("Conv", "x u", "a", pads=[0, 0, 0, 0]),
        node("Pad", "a p v", "b"),
        node("Conv", "b w", "y", pads=[0, 0, 0, 0]),
    ]
    weights = {
        "p": np.array([0, 0, 1, 1, 0, 0, 1, 1]),
        "v": 0.0,
        "u": np.ones((3, 3, 1, 1), np.float32),
        "w": np.ones((2, 3, 3, 3), np.float32),
    }
    model = graph_of(nodes, {"x": (1, 3, 6, 6)}, weights)
    canonicalize_conv_pool_attributes(model)
    assert apply_pass(fuse_pad, model) == 1
