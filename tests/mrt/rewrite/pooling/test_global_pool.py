"""lower_global_pool: before and after on the smallest graphs, and where it must not apply."""

import pytest

from mrt.rewrite.linear.conv_pool_attributes import (
    canonicalize_conv_pool_attributes,
)
from mrt.rewrite.pooling.global_pool import lower_global_pool
from tests.support.graphs import (
    apply_pass,
    constant_named,
    graph_of,
    node,
    operators_of,
)


@pytest.mark.parametrize("shape", [(2, 3, 5), (2, 3, 5, 4)])
@pytest.mark.parametrize(
    ("pool", "reduction"),
    [("GlobalAveragePool", "ReduceMean"), ("GlobalMaxPool", "ReduceMax")],
)
def test_a_global_pool_is_a_reduction(pool, reduction, shape):
    model = graph_of([node(pool, "x", "y")], {"x": shape})
    assert apply_pass(lower_global_pool, model) == 1
    assert operators_of(model) == [reduction]
    assert constant_named(model, "y.axes").tolist() == list(
        range(2, len(shape))
    )


def test_an_unknown_shape_stays():
    assert (
        lower_global_pool(
            graph_of([node("GlobalMaxPool", "x", "y")], {"x": (2, 3, "h", "w")})
        )
        == 0
    )


def test_what_stays_is_passed_over():
    nodes = [node("GlobalMaxPool", "z", "a"), node("GlobalMaxPool", "x", "y")]
    model = graph_of(nodes, {"z": (2, 3, "h", "w"), "x": (2, 3, 5)})
    assert lower_global_pool(model) == 1
    assert operators_of(model) == ["GlobalMaxPool", "ReduceMax"]


def _average(kernel, **attributes):
    pool = node("AveragePool", "x", "y", kernel_shape=kernel, **attributes)
    model = graph_of([pool], {"x": (1, 3, 5, 4)})
    canonicalize_conv_pool_attributes(model)
    return model


@pytest.mark.parametrize("strides", [[1, 1], [5, 4], [2, 2]])
def test_an_average_over_the_whole_image_is_a_reduction(strides):
    model = _average([5, 4], strides=strides)
    assert apply_pass(lower_global_pool, model) == 1
    assert operators_of(model) == ["ReduceMean"]
    assert constant_named(model, "y.axes").tolist() == [2, 3]


@pytest.mark.parametrize(
    ("kernel", "attributes"),
    [
        ([5, 3], {}),
        ([5, 4], {"pads": [0, 1, 0, 1], "count_include_pad": 1}),
        ([3, 4], {"dilations": [2, 1]}),
    ],
)
def test_an_average_over_a_part_or_over_padding_stays(kernel, attributes):
    assert apply_pass(lower_global_pool, _average(kernel, **attributes)) == 0
