"""fuse_affine_before: before and after on the smallest graphs, and where it must not apply."""

import numpy as np
import pytest

from mrt.rewrite.linear.fuse_affine_before import fuse_affine_before
from tests.support.graphs import (
    apply_pass,
    constant_named,
    graph_of,
    node,
    operators_of,
)

_PARAMETERS = {
    "g": [2.0, 3.0],
    "b": [1.0, -1.0],
    "m": [0.5, 4.0],
    "v": [3.0, 15.0],
}
# gamma / sqrt(variance + 1) = 2/2, 3/4; beta - mean * scale = 1 - 0.5, -1 - 3
_SCALE, _SHIFT = [1.0, 0.75], [0.5, -4.0]
_W = np.arange(36, dtype=np.float32).reshape(2, 2, 3, 3)


def _before(operator="Conv", weights=_W, outputs="y", **attributes):
    nodes = [
        node("BatchNormalization", "x g b m v", "a", epsilon=1.0),
        node(operator, "a w c", "y", **attributes),
    ]
    shape = (4, 2) if operator == "Gemm" else (1, 2, 5, 5)
    return graph_of(
        nodes,
        {"x": shape},
        {"w": weights, "c": [8.0, 4.0], **_PARAMETERS},
        outputs=outputs,
    )


def test_scale_and_shift_go_into_weights_and_bias():
    model = _before()
    assert apply_pass(fuse_affine_before, model) == 1
    assert operators_of(model) == ["Conv"]
    assert (
        constant_named(model, "y.weight")
        == _W * np.array(_SCALE, np.float32).reshape(1, 2, 1, 1)
    ).all()
    # sums of 0..8, 9..17, 18..26, 27..35 are 36, 117, 198, 279, times 0.5 and -4
    assert constant_named(model, "y.bias").tolist() == [
        8.0 + 18 - 468,
        4.0 + 99 - 1116,
    ]


def test_a_dense_layer():
    model = _before("Gemm", np.array([[1, 2], [3, 4]], np.float32), transB=1)
    assert apply_pass(fuse_affine_before, model) == 1
    assert constant_named(model, "y.bias").tolist() == [
        8.0 + 0.5 - 8,
        4.0 + 1.5 - 16,
    ]


def test_groups_take_the_channels_of_their_own():
    model = _before(weights=_W[:, :1].copy(), group=2)
    assert apply_pass(fuse_affine_before, model) == 1
    assert (
        constant_named(model, "y.weight")[1] == _W[1, 0] * np.float32(0.75)
    ).all()


@pytest.mark.parametrize("operator", ["Conv", "ConvTranspose"])
def test_a_scale_alone_passes_padding(operator):
    nodes = [
        node("Mul", "x k", "a"),
        node(operator, "a w c", "y", pads=[1, 1, 1, 1]),
    ]
    weights = {"w": _W, "c": [8.0, 4.0], "k": [[[2.0]], [[3.0]]]}
    model = graph_of(nodes, {"x": (1, 2, 5, 5)}, weights)
    assert apply_pass(fuse_affine_before, model) == 1
    assert operators_of(model) == [operator]


@pytest.mark.parametrize(
    "attributes", [{"pads": [0, 0, 0, 1]}, {"auto_pad": "SAME_UPPER"}]
)
def test_a_shift_stays_before_padding(attributes):
    assert apply_pass(fuse_affine_before, _before(**attributes)) == 0


def test_a_shift_stays_before_a_transposed_convolution():
    assert apply_pass(fuse_affine_before, _before("ConvTranspose")) == 0


def test_a_value_that_is_read_elsewhere_stays():
    assert apply_pass(fuse_affine_before, _before(outputs="y a")) == 0


def test_each_output_of_a_grouped_conv_takes_the_scale_of_its_own_group():
    """As in ResNeXt: outputs 0 and 1 read input 0, outputs 2 and 3 read input 1."""
    weights = np.array([1, 2, 4, 8], np.float32).reshape(4, 1, 1, 1)
    nodes = [
        node("BatchNormalization", "x g b m v", "a", epsilon=1.0),
        node("Conv", "a w c", "y", group=2),
    ]
    constants = {"w": weights, "c": [0.0, 0.0, 0.0, 0.0], **_PARAMETERS}
    model = graph_of(nodes, {"x": (1, 2, 5, 5)}, constants, outputs="y")
    assert apply_pass(fuse_affine_before, model) == 1
    fused = constant_named(model, "y.weight").reshape(-1).tolist()
    assert fused == [1.0, 2.0, 3.0, 6.0]  # scales 1, 1, 0.75, 0.75
    bias = constant_named(model, "y.bias").tolist()
    assert bias == [0.5, 1.0, -16.0, -32.0]  # shifts 0.5, 0.5, -4, -4


def test_what_stays_is_passed_over():
    """A layer behind no scale, one of computed weights, and one that would overflow."""
    weights = {"w": _W, "c": [8.0, 4.0], "k": 2.0}
    weights["large"] = np.full((2, 2, 1, 1), 3e38, np.float32)
    nodes = [
        node("Conv", "x w c", "a"),
        node("Mul", "x k", "m1"),
        node("Conv", "m1 v c", "b"),
        node("Mul", "x k", "m2"),
        node("Conv", "m2 large c", "d"),
        node("Mul", "x k", "m3"),
        node("Conv", "m3 w c", "y"),
    ]
    shapes = {"x": (1, 2, 5, 5), "v": (2, 2, 3, 3)}
    model = graph_of(nodes, shapes, weights)
    assert fuse_affine_before(model) == 1
    assert (constant_named(model, "y.weight") == 2 * _W).all()
