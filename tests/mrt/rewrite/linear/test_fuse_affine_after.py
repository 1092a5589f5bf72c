"""fuse_affine_after: before and after on the smallest graphs, and where it must not apply."""

import numpy as np
import pytest

from mrt.rewrite.linear.fuse_affine_after import fuse_affine_after
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
_ONES = {
    "Conv": np.ones((2, 3, 3, 3), np.float32),
    "ConvTranspose": np.ones((3, 2, 3, 3), np.float32),
    "Gemm": np.ones((2, 3), np.float32),
}


def _with_norm(operator, outputs="y"):
    attributes = {"transB": 1} if operator == "Gemm" else {}
    nodes = [
        node(operator, "x w c", "a", **attributes),
        node("BatchNormalization", "a g b m v", "y", epsilon=1.0),
    ]
    shape = (4, 3) if operator == "Gemm" else (1, 3, 5, 5)
    return graph_of(
        nodes,
        {"x": shape},
        {"w": _ONES[operator], "c": [8.0, 4.0], **_PARAMETERS},
        outputs=outputs,
    )


@pytest.mark.parametrize("operator", _ONES)
def test_a_batch_norm_goes_into_weights_and_bias(operator):
    model = _with_norm(operator)
    assert apply_pass(fuse_affine_after, model) == 1
    assert operators_of(model) == [operator]
    weight = constant_named(model, "y.weight")
    axis = 1 if operator == "ConvTranspose" else 0
    assert [
        np.unique(weight.take(channel, axis)).tolist() for channel in (0, 1)
    ] == [
        [1.0],
        [0.75],
    ]
    assert constant_named(model, "y.bias").tolist() == [
        8.5,
        -1.0,
    ]  # 8 * 1 + 0.5, 4 * 0.75 - 4


def test_a_grouped_transposed_convolution_scales_by_group():
    nodes = [
        node("ConvTranspose", "x w c", "a", group=2),
        node("Mul", "a k", "y"),
    ]
    weights = {
        "w": np.ones((2, 2, 1, 1), np.float32),
        "c": [1.0] * 4,
        "k": np.array([2, 3, 4, 5], np.float32).reshape(4, 1, 1),
    }
    model = graph_of(nodes, {"x": (1, 2, 3, 3)}, weights)
    assert apply_pass(fuse_affine_after, model) == 1
    assert constant_named(model, "y.weight").reshape(-1).tolist() == [
        2.0,
        3.0,
        4.0,
        5.0,
    ]


@pytest.mark.parametrize(
    ("operator", "constant", "bias"),
    [
        ("Mul", 0.5, [4.0, 2.0]),
        ("Add", 0.5, [8.5, 4.5]),
        ("Add", [[[[1.0]], [[2.0]]]], [9.0, 6.0]),
    ],
)
def test_a_constant_of_each_channel_goes_in_too(operator, constant, bias):
    nodes = [node("Conv", "x w c", "a"), node(operator, "a k", "y")]
    model = graph_of(
        nodes,
        {"x": (1, 3, 5, 5)},
        {"w": _ONES["Conv"], "c": [8.0, 4.0], "k": constant},
    )
    assert apply_pass(fuse_affine_after, model) == 1
    assert constant_named(model, "y.bias").tolist() == bias


@pytest.mark.parametrize("shape", [(3,), (3, 1), (1, 1, 3, 3), (2, 2, 1, 1)])
def test_constants_that_vary_otherwise_stay(shape):
    nodes = [node("Conv", "x w c", "a"), node("Mul", "a k", "y")]
    weights = {
        "w": _ONES["Conv"],
        "c": [8.0, 4.0],
        "k": np.full(shape, 2, np.float32),
    }
    assert (
        apply_pass(
            fuse_affine_after, graph_of(nodes, {"x": (1, 3, 5, 5)}, weights)
        )
        == 0
    )


def test_a_convolution_that_is_read_elsewhere_stays():
    assert apply_pass(fuse_affine_after, _with_norm("Conv", outputs="y a")) == 0


def test_weights_that_would_overflow_stay():
    nodes = [node("Conv", "x w c", "a"), node("Mul", "a k", "y")]
    weights = {
        "w": np.full((2, 3, 3, 3), 1e30, np.float32),
        "c": [0.0, 0.0],
        "k": 1e30,
    }
    assert fuse_affine_after(graph_of(nodes, {"x": (1, 3, 5, 5)}, weights)) == 0
