"""lower_average_pool: before and after on the smallest graphs, and where it must not apply."""

import numpy as np
import pytest

from mrt.graph.values import ints_attribute
from mrt.rewrite.linear.conv_pool_attributes import (
    canonicalize_conv_pool_attributes,
)
from mrt.rewrite.pooling.average_pool import lower_average_pool
from tests.support.graphs import (
    apply_pass,
    constant_named,
    graph_of,
    node,
    operators_of,
)


def _pool(**attributes):
    pool = node(
        "AveragePool",
        "x",
        "y",
        kernel_shape=[3, 3],
        strides=[2, 2],
        **attributes,
    )
    model = graph_of([pool], {"x": (1, 2, 8, 7)})
    canonicalize_conv_pool_attributes(model)
    return model


@pytest.mark.parametrize(
    "attributes", [{}, {"pads": [1, 1, 1, 1], "count_include_pad": 1}]
)
def test_one_divisor_everywhere_is_a_depthwise_convolution(attributes):
    model = _pool(**attributes)
    assert apply_pass(lower_average_pool, model) == 1
    assert operators_of(model) == ["Conv"]
    assert constant_named(model, "y.weight").shape == (2, 1, 3, 3)
    assert (constant_named(model, "y.weight") == np.float32(1 / 9)).all()
    assert model.graph[0].attributes["group"].as_int() == 2


def test_padding_that_is_not_counted_stays():
    assert apply_pass(lower_average_pool, _pool(pads=[1, 1, 1, 1])) == 0


def test_rounding_up_becomes_padding_that_is_not_counted():
    model = _pool(ceil_mode=1)
    assert apply_pass(lower_average_pool, model) == 1
    assert ints_attribute(model.graph[0], "pads") == (0, 0, 1, 0)
    assert model.graph[0].attributes["ceil_mode"].as_int() == 0


def test_rounding_up_behind_counted_padding_pads_first():
    model = _pool(ceil_mode=1, pads=[1, 1, 0, 1], count_include_pad=1)
    assert apply_pass(lower_average_pool, model) == 1
    assert operators_of(model) == ["Conv"]
    model = _pool(ceil_mode=1, pads=[1, 1, 1, 1], count_include_pad=1)
    assert apply_pass(lower_average_pool, model) == 1
    assert operators_of(model) == ["Pad", "AveragePool"]
    assert ints_attribute(model.graph[1], "pads") == (0, 0, 1, 0)
