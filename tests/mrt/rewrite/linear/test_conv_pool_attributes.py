"""canonicalize_conv_pool_attributes: before and after on the smallest graphs, and where it must not apply."""

import numpy as np
import pytest

from mrt.graph.values import int_attribute, ints_attribute
from mrt.rewrite.linear.conv_pool_attributes import (
    canonicalize_conv_pool_attributes,
    window_of,
)
from tests.support.graphs import apply_pass, graph_of, node


def _convolution(**attributes):
    weights = {"w": np.ones((4, 3, 3, 2), np.float32)}
    return graph_of(
        [node("Conv", "x w", "y", **attributes)], {"x": (1, 3, 7, 6)}, weights
    )


def test_defaults_are_written():
    model = _convolution()
    assert apply_pass(canonicalize_conv_pool_attributes, model) == 1
    conv = model.graph[0]
    found = {
        name: ints_attribute(conv, name)
        for name in ("kernel_shape", "strides", "dilations", "pads")
    }
    assert found == {
        "kernel_shape": (3, 2),
        "strides": (1, 1),
        "dilations": (1, 1),
        "pads": (0, 0, 0, 0),
    }
    assert int_attribute(conv, "group", 0) == 1


@pytest.mark.parametrize(
    ("mode", "pads"),
    [
        ("SAME_UPPER", (1, 0, 1, 0)),
        ("SAME_LOWER", (1, 0, 1, 0)),
        ("VALID", (0, 0, 0, 0)),
    ],
)
def test_automatic_padding_of_odd_totals(mode, pads):
    # height: (4 - 1) * 2 + 3 - 7 = 2; width: (3 - 1) * 2 + 2 - 6 = 0
    model = _convolution(auto_pad=mode, strides=[2, 2])
    apply_pass(canonicalize_conv_pool_attributes, model)
    assert ints_attribute(model.graph[0], "pads") == pads
    assert "auto_pad" not in model.graph[0].attributes


@pytest.mark.parametrize(
    ("mode", "pads"),
    [("SAME_UPPER", (1, 0, 1, 1)), ("SAME_LOWER", (1, 1, 1, 0))],
)
def test_the_odd_pixel_goes_behind_or_in_front(mode, pads):
    # height 2, width (6 - 1) * 1 + 2 - 6 = 1
    model = _convolution(auto_pad=mode)
    apply_pass(canonicalize_conv_pool_attributes, model)
    assert ints_attribute(model.graph[0], "pads") == pads


def test_a_transposed_convolution_to_a_given_shape():
    # full size: 2 * 3 + 3 = 9 and 2 * 2 + 3 = 7; wanted 8 and 6: one to cut, in front
    deconv = node(
        "ConvTranspose", "x w", "y", strides=[2, 2], output_shape=[8, 6]
    )
    model = graph_of(
        [deconv], {"x": (1, 1, 4, 3)}, {"w": np.ones((1, 1, 3, 3), np.float32)}
    )
    assert apply_pass(canonicalize_conv_pool_attributes, model) == 1
    assert ints_attribute(model.graph[0], "pads") == (1, 1, 0, 0)
    assert "output_shape" not in model.graph[0].attributes


def test_a_transposed_convolution_to_a_greater_shape_is_continued_behind():
    # full size: 2 * 3 + 3 = 9 and 2 * 2 + 3 = 7; wanted 10 and 7
    deconv = node(
        "ConvTranspose", "x w", "y", strides=[2, 2], output_shape=[10, 7]
    )
    model = graph_of(
        [deconv], {"x": (1, 1, 4, 3)}, {"w": np.ones((1, 1, 3, 3), np.float32)}
    )
    canonicalize_conv_pool_attributes(model)
    assert ints_attribute(model.graph[0], "pads") == (0, 0, 0, 0)
    assert ints_attribute(model.graph[0], "output_padding") == (1, 0)


def test_written_windows_stay():
    model = _convolution()
    apply_pass(canonicalize_conv_pool_attributes, model)
    assert apply_pass(canonicalize_conv_pool_attributes, model) == 0


def test_a_window_that_leaves_dilations_out_is_dense():
    pool = node(
        "AveragePool",
        "x",
        "y",
        kernel_shape=[3, 2],
        strides=[1, 1],
        pads=[0, 0, 0, 0],
    )
    model = graph_of([pool], {"x": (1, 3, 7, 6)})
    window = window_of(model.graph[0])
    assert window is not None
    assert window.extent == (3, 2)
