"""lower_conv3d: what three spatial axes become, that it means the same, and that the integers come out right."""

import numpy as np
import pytest

from mrt.graph.values import ints_attribute
from mrt.rewrite import rewrite
from mrt.rewrite.linear.conv3d import lower_conv3d
from mrt.rewrite.linear.conv_bias import add_conv_bias
from mrt.rewrite.linear.conv_pool_attributes import (
    canonicalize_conv_pool_attributes,
)
from tests.support.graphs import (
    apply_pass,
    assert_same,
    constant_named,
    graph_of,
    node,
    operators_of,
    run,
    seeded,
    shapes_of,
)

RNG = np.random.default_rng(3)
SHAPE = (2, 6, 7, 6, 5)
SUM_ROUNDING = 5e-6  # a hundred products, added in another order


def normal(*shape: int) -> np.ndarray:
    return RNG.normal(size=shape).astype(np.float32)


CASES = {
    "every attribute": (node("Conv", "x w b", "y", pads=[1, 2, 0, 2, 0, 1], strides=[2, 1, 2], dilations=[2, 1, 1]),
                        {"w": normal(4, 6, 3, 2, 3), "b": normal(4)}),
    "groups": (node("Conv", "x w b", "y", pads=[1, 2, 0, 2, 0, 1], group=3),
               {"w": normal(6, 2, 3, 2, 3), "b": normal(6)}),
    "one tap of depth": (node("Conv", "x w", "y", strides=[2, 1, 1]), {"w": normal(4, 6, 1, 3, 3)}),
    "depth alone": (node("Conv", "x w", "y", pads=[1, 0, 0, 1, 0, 0]), {"w": normal(4, 6, 3, 1, 1)}),
    "same upper": (node("Conv", "x w", "y", auto_pad="SAME_UPPER", strides=[2, 2, 2]), {"w": normal(4, 6, 2, 2, 3)}),
    "transposed": (node("ConvTranspose", "x w b", "y", pads=[1, 2, 0, 2, 0, 1], strides=[2, 1, 2],
                        output_padding=[1, 0, 1]), {"w": normal(6, 4, 3, 3, 3), "b": normal(4)}),
    "transposed in groups, cut deeper than its kernel reaches": (
        node("ConvTranspose", "x w", "y", pads=[3, 2, 0, 2, 0, 1], group=3, strides=[3, 2, 1]),
        {"w": normal(6, 4, 2, 3, 3)}),
    "maxima": (node("MaxPool", "x", "y", pads=[1, 1, 0, 1, 0, 1], kernel_shape=[3, 2, 2], strides=[2, 1, 2]), {}),
    "maxima, size rounded up": (node("MaxPool", "x", "y", kernel_shape=[2, 3, 2], strides=[2] * 3, ceil_mode=1), {}),
    "means": (node("AveragePool", "x", "y", kernel_shape=[3, 2, 2], strides=[2, 1, 2]), {}),
    "means, padding counted": (node("AveragePool", "x", "y", pads=[1, 1, 0, 1, 0, 1], kernel_shape=[3, 2, 2],
                                    count_include_pad=1), {}),
    "means, padding not counted": (node("AveragePool", "x", "y", pads=[1, 1, 0, 1, 0, 1], kernel_shape=[3, 2, 2]), {}),
    "means, size rounded up": (node("AveragePool", "x", "y", kernel_shape=[2, 3, 2], strides=[2, 2, 2], ceil_mode=1,
                                    pads=[1, 0, 1, 0, 1, 0]), {}),
    "mean of all": (node("GlobalAveragePool", "x", "y"), {}),
    "maximum of all": (node("GlobalMaxPool", "x", "y"), {}),
    "batch norm": (node("BatchNormalization", "x g g g g", "y"), {"g": np.abs(normal(6))}),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_three_spatial_axes_reach_canonical_form_and_keep_the_meaning(name):
    one, weights = CASES[name]
    model = graph_of([one], {"x": SHAPE}, weights)
    feeds = seeded(shapes_of(model))
    before = run(model, feeds)
    rewrite(model)
    assert_same(before, run(model, feeds), SUM_ROUNDING)


def test_all_products_of_a_convolution_are_in_one_sum():
    model = graph_of(
        [node("Conv", "x w b", "y")],
        {"x": SHAPE},
        {"w": normal(4, 6, 3, 2, 3), "b": normal(4)},
    )
    canonicalize_conv_pool_attributes(model)
    assert apply_pass(lower_conv3d, model, SUM_ROUNDING) == 1
    assert operators_of(model).count("Conv") == 1
    assert constant_named(model, "y.weight").shape == (
        4,
        18,
        2,
        3,
    )  # 3 taps of depth times 6 channels
    assert "Add" not in operators_of(model)


def test_a_pool_is_one_of_rows_and_columns_then_one_of_depth():
    one = node(
        "MaxPool",
        "x",
        "y",
        kernel_shape=[3, 2, 4],
        strides=[3, 1, 2],
        pads=[1, 0, 2, 1, 1, 0],
    )
    model = graph_of([one], {"x": SHAPE})
    canonicalize_conv_pool_attributes(model)
    assert apply_pass(lower_conv3d, model) == 1
    pools = [entry for entry in model.graph if entry.op_type == "MaxPool"]
    assert [ints_attribute(pool, "kernel_shape") for pool in pools] == [
        (2, 4),
        (3, 1),
    ]
    assert [ints_attribute(pool, "pads") for pool in pools] == [
        (0, 2, 1, 0),
        (1, 0, 1, 0),
    ]


def test_two_spatial_axes_and_computed_weights_stay():
    flat = graph_of(
        [node("MaxPool", "x", "y", kernel_shape=[2, 2])], {"x": (1, 1, 4, 4)}
    )
    computed = graph_of(
        [node("Conv", "x w", "y")], {"x": (1, 2, 4, 4, 4), "w": (3, 2, 2, 2, 2)}
    )
    for model in (flat, computed):
        canonicalize_conv_pool_attributes(model)
        add_conv_bias(model)
        assert apply_pass(lower_conv3d, model) == 0


def test_a_convolution_with_a_computed_bias_stays():
    nodes = [
        node("ReduceSum", "x a", "b", keepdims=0),
        node("Conv", "x w b", "y"),
    ]
    constants = {"a": np.array([0, 2, 3, 4]), "w": normal(6, 6, 2, 2, 2)}
    model = graph_of(nodes, {"x": SHAPE}, constants)
    canonicalize_conv_pool_attributes(model)
    assert lower_conv3d(model) == 0
