"""lower_max_pool: before and after on the smallest graphs, and where it must not apply."""

import pytest

from mrt.graph.values import ints_attribute
from mrt.rewrite.linear.conv_pool_attributes import (
    WindowAttributes,
    canonicalize_conv_pool_attributes,
)
from mrt.rewrite.pooling.max_pool import lower_max_pool, pads_to_the_end
from tests.support.graphs import apply_pass, graph_of, node


def _pool(**attributes):
    model = graph_of(
        [
            node(
                "MaxPool",
                "x",
                "y",
                kernel_shape=[3, 3],
                strides=[2, 2],
                **attributes,
            )
        ],
        {"x": (1, 2, 8, 7)},
    )
    canonicalize_conv_pool_attributes(model)
    return model


def test_rounding_up_becomes_padding_at_the_end():
    # 8 rows: windows begin at 0 2 4 6, the last ends at 9: one row more; 7 columns: the last ends at 7
    model = _pool(ceil_mode=1)
    assert apply_pass(lower_max_pool, model, 0) == 1
    assert ints_attribute(model.graph[0], "pads") == (0, 0, 1, 0)


def test_rounding_down_stays():
    assert apply_pass(lower_max_pool, _pool()) == 0


@pytest.mark.parametrize(
    ("kernel", "stride", "pads", "size", "out", "expected"),
    [
        (3, 2, (0, 0), 6, 3, (0, 1)),
        (3, 2, (1, 1), 7, 4, (1, 1)),
        (2, 2, (0, 0), 5, 3, (0, 1)),
        (3, 3, (1, 0), 7, 3, (1, 1)),
        (2, 3, (1, 1), 4, 2, (1, 1)),
    ],
)
def test_the_last_window_just_fits(kernel, stride, pads, size, out, expected):
    window = WindowAttributes((kernel,), (stride,), (1,), pads)
    assert pads_to_the_end(window, (size,), (out,)) == expected
