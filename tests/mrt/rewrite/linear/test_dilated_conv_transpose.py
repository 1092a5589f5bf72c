"""lower_dilated_conv_transpose: before and after on the smallest graphs, and where it must not apply."""

import numpy as np

from mrt.graph.values import ints_attribute
from mrt.rewrite.linear.dilated_conv_transpose import (
    lower_dilated_conv_transpose,
)
from tests.support.graphs import apply_pass, constant_named, graph_of, node

IMAGE = {"x": (1, 2, 4, 3)}


def _transposed(**attributes):
    weights = {"w": np.arange(1, 9, dtype=np.float32).reshape(2, 1, 2, 2)}
    return graph_of(
        [node("ConvTranspose", "x w", "y", kernel_shape=[2, 2], **attributes)],
        IMAGE,
        weights,
    )


def test_taps_move_apart():
    model = _transposed(dilations=[2, 3], strides=[1, 2], pads=[1, 0, 0, 1])
    assert apply_pass(lower_dilated_conv_transpose, model) == 1
    assert constant_named(model, "y.spread")[0, 0].tolist() == [
        [1, 0, 0, 2],
        [0, 0, 0, 0],
        [3, 0, 0, 4],
    ]
    assert ints_attribute(model.graph[0], "kernel_shape") == (3, 4)
    assert ints_attribute(model.graph[0], "dilations") == (1, 1)


def test_without_dilations_nothing_changes():
    assert lower_dilated_conv_transpose(_transposed(dilations=[1, 1])) == 0
    assert lower_dilated_conv_transpose(_transposed()) == 0


def test_computed_weights_stay():
    shapes = {**IMAGE, "w": (2, 1, 2, 2)}
    assert (
        lower_dilated_conv_transpose(
            graph_of(
                [node("ConvTranspose", "x w", "y", dilations=[2, 2])], shapes
            )
        )
        == 0
    )
