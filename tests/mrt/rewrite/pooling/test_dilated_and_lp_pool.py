"""lower_dilated_and_lp_pool: dilated pools and pools of powers, as onnxruntime computes them."""

import pytest

from mrt.rewrite.linear.conv_pool_attributes import (
    canonicalize_conv_pool_attributes,
)
from mrt.rewrite.pooling import dilated_and_lp_pool
from mrt.rewrite.pooling.dilated_and_lp_pool import lower_dilated_and_lp_pool
from tests.support.graphs import apply_pass, graph_of, node, operators_of

X = (2, 3, 9, 8)


@pytest.mark.parametrize(
    ("operator", "attributes"),
    [
        ("MaxPool", {"dilations": [2, 3], "pads": [1, 1, 1, 1]}),
        ("LpPool", {"p": 2, "strides": [2, 1]}),
    ],
)
def test_a_pool_without_an_instruction_is_lowered(operator, attributes):
    pool = node(operator, "x", "y", kernel_shape=[2, 2], **attributes)
    model = graph_of([pool], {"x": X})
    canonicalize_conv_pool_attributes(model)
    assert apply_pass(lower_dilated_and_lp_pool, model) == 1
    assert operator not in operators_of(model)


@pytest.mark.parametrize(("taps", "lowered"), [(256, 1), (257, 0)])
def test_a_wide_dilated_pool_stays(taps, lowered):
    pool = node(
        "MaxPool",
        "x",
        "y",
        kernel_shape=[1, taps],
        strides=[1, 1],
        dilations=[1, 2],
        pads=[0, 0, 0, 0],
    )
    model = graph_of([pool], {"x": (1, 1, 1, 600)})
    assert apply_pass(lower_dilated_and_lp_pool, model, 0) == lowered


def test_a_pool_without_dilation_stays():
    pool = node("AveragePool", "x", "y", kernel_shape=[2, 2], pads=[1, 1, 1, 1])
    model = graph_of([pool], {"x": X})
    canonicalize_conv_pool_attributes(model)
    assert apply_pass(lower_dilated_and_lp_pool, model) == 0


@pytest.mark.parametrize(("most", "lowered"), [(4 * 336, 1), (4 * 336 - 1, 0)])
def test_a_pool_of_cubes_with_too_many_elements_stays(
    most, lowered, monkeypatch
):
    monkeypatch.setattr(dilated_and_lp_pool, "LARGEST_RESULT", most)
    pool = node("LpPool", "x", "y", p=3, kernel_shape=[2, 2])
    model = graph_of([pool], {"x": X})
    canonicalize_conv_pool_attributes(model)
    assert apply_pass(lower_dilated_and_lp_pool, model) == lowered
