"""Pooling in every convention, type and layout, with the numbers that MXNet 1.9.1 gave for each row."""

import numpy as np
import pytest

from mrt.frontend.mxnet import load_mxnet
from tests.support.mxnet_files import node, variable, write_symbol
from tests.support.mxnet_rows import (
    check_refusal,
    check_row,
    compute,
    names,
    row,
)


def numbers(*shape):
    """Integers from -5 to 5 in no order: -5, 2, -2, 5, 1, -3, 4, 0, -4, 3, -1, and again."""
    return (
        (np.arange(np.prod(shape, dtype=int)) * 7 % 11 - 5)
        .astype(np.float32)
        .reshape(shape)
    )


ROWS = [
    row("Pooling", numbers(1, 1, 4, 4), np.reshape([-1.25, 0.75, 0, -0.5, 0, 0, 0, 0, 0], (1, 1, 3, 3)),
        kernel="(2, 2)", stride="(3, 3)", pad="(1, 1)", pooling_convention="full", pool_type="avg"),
    row("Pooling", numbers(1, 1, 4, 4), np.reshape([-5, 1.5, 0, -1, 0, 0, 0, 0, 0], (1, 1, 3, 3)), kernel="(2, 2)",
        stride="(3, 3)", pad="(1, 1)", pooling_convention="full", pool_type="avg", count_include_pad="False"),
    row("Pooling", numbers(1, 1, 4, 4), np.reshape([-5, 3, 0, -2, 0, 0, 0, 0, 0], (1, 1, 3, 3)), kernel="(2, 2)",
        stride="(3, 3)", pad="(1, 1)", pooling_convention="full", pool_type="sum"),
    row("Pooling", numbers(1, 1, 4, 4), np.reshape([5, 5.385165, 0, 4.472136, 7.211102, 0, 0, 0, 0], (1, 1, 3, 3)),
        kernel="(2, 2)", stride="(3, 3)", pad="(1, 1)", pooling_convention="full", pool_type="lp", p_value="2"),
    row("Pooling", numbers(1, 1, 4, 4), np.reshape([-0.5555556, 0.6666667, 0.8333333, -0.3333333, 0.2222222,
        -0.6666666, 0, 0.6666666, 0.25], (1, 1, 3, 3)), kernel="(3, 3)", stride="(2, 2)", pad="(1, 1)",
        pooling_convention="full", pool_type="avg"),
    row("Pooling", numbers(1, 1, 4, 4), np.reshape([2, 5, 5, 3, 5, 1, 2, 5, 1], (1, 1, 3, 3)), kernel="(3, 3)",
        stride="(2, 2)", pad="(1, 1)", pooling_convention="full"),
    row("Pooling", numbers(1, 1, 4, 4), np.reshape([-5, 1, 7, -3, 3, -2, -1, 5, 0], (1, 1, 3, 3)), kernel="(2, 2)",
        pool_type="lp", p_value="1"),
    row("Pooling", numbers(1, 1, 4, 4), np.reshape([5.385165, 5.385165, 5.91608, 6.480741, 2.828427, 5.09902], (1, 1,
        3, 2)), kernel="(2, 2)", pool_type="lp", p_value="2", pad="(1, 0)", stride="(2, 2)"),
    row("Pooling", numbers(1, 3, 2, 2), np.reshape([4, 5], (1, 1, 1, 2)), global_pool="1", pool_type="max",
        layout="NHWC"),
    row("Pooling", numbers(1, 3, 2, 2), np.reshape([0, 0.5, -1.75], (1, 3, 1, 1)), global_pool="1", pool_type="avg",
        layout="None"),
    row("Pooling", numbers(1, 3, 2, 2), np.reshape([0, 2, -7], (1, 3, 1, 1)), global_pool="1", pool_type="sum",
        layout="None"),
    row("Pooling", numbers(1, 2, 2, 2), np.reshape([7.615773, 5.09902], (1, 2, 1, 1)), global_pool="1",
        pool_type="lp", p_value="2"),
    row("Pooling", numbers(1, 3, 3, 2), np.reshape([4, 5, 1, 5, 5, 3, 5, 4], (1, 2, 2, 2)), kernel="(2, 2)",
        layout="NHWC"),
    row("Pooling", numbers(1, 5, 2), np.reshape([-3.5, 3.5, 2.5, -1.5, -4, 3], (1, 3, 2)), kernel="(2,)",
        stride="(2,)", layout="NWC", pool_type="avg", pooling_convention="full"),
    row("Pooling", numbers(1, 1, 5), np.reshape([-1.5, 1.666667, 3], (1, 1, 3)), kernel="(3,)", stride="(2,)",
        pad="(1,)", pool_type="avg", count_include_pad="False"),
    row("Pooling", numbers(1, 1, 2, 3, 3), np.reshape([5, 5, 5, 5], (1, 1, 1, 2, 2)), kernel="(2, 2, 2)",
        pool_type="max"),
    row("Pooling", numbers(1, 1, 2, 3, 3), np.reshape([-0.25, -0.75, 1.5, -0.25], (1, 1, 1, 2, 2)),
        kernel="(2, 2, 2)", pool_type="avg", pad="(0, 1, 1)", stride="(1, 2, 2)"),
    row("Pooling", numbers(1, 2, 2, 2, 1), np.reshape([2], (1, 1, 1, 1, 1)), kernel="(2, 2, 2)", layout="NDHWC",
        pool_type="sum"),
    row("Pooling_v1", numbers(1, 1, 4, 4), np.reshape([-0.5555556, 0.6666667, 0.5555556, -0.3333333, 0.2222222,
        -0.4444444, 0, 0.4444444, 0.1111111], (1, 1, 3, 3)), kernel="(3, 3)", stride="(2, 2)", pad="(1, 1)",
        pool_type="avg", pooling_convention="full"),
    row("Pooling_v1", numbers(1, 1, 4, 4), np.reshape([-5, 7, -1, 0], (1, 1, 2, 2)), kernel="(2, 2)", stride="(2, 2)",
        pool_type="sum"),
    row("Pooling_v1", numbers(1, 1, 4, 4), np.reshape([-5, -2, 0, -4, -1, 0, 0, 0, 0], (1, 1, 3, 3)), kernel="(1, 1)",
        stride="(2, 2)", pool_type="avg", pooling_convention="full"),
    row("Pooling_v1", numbers(1, 2, 2, 2), np.reshape([0, 0.5], (1, 2, 1, 1)), pool_type="avg", global_pool="1"),
]  # fmt: skip

SQUARE = numbers(1, 1, 4, 4)
REFUSALS = [
    (row("Pooling", SQUARE, 0, kernel="(1, 1)", stride="(2, 2)", pooling_convention="full"),
     "a window lies wholly in the padding"),
    (row("Pooling", SQUARE, 0, kernel="(2, 2)", pad="(2, 0)", pool_type="avg"), "a window lies wholly in the padding"),
    (row("Pooling", numbers(1, 1, 5), 0, kernel="(2,)", pooling_convention="same"), "supported: valid, full"),
    (row("Pooling", SQUARE, 0, kernel="(2, 2)", pool_type="lp"), "p_value=None: supported: 1, 2"),
    (row("Pooling", SQUARE, 0, global_pool="1", layout="NWC"), "layout=NWC for 2 spatial axes; expected NCHW or NHWC"),
    (row("Pooling_v1", SQUARE, 0, kernel="(2, 2)", pad="(1, 1)"), "a maximum over zeros outside is supported after"),
    (row("Pooling_v1", SQUARE, 0, kernel="(2, 2)", stride="(3, 3)", pad="(1, 1)", pooling_convention="full"),
     "a window lies wholly in the padding"),
]  # fmt: skip


@pytest.mark.parametrize("case", ROWS, ids=names(ROWS))
def test_a_pool_has_the_sizes_and_numbers_of_mxnet(case, tmp_path):
    check_row(tmp_path, case)


@pytest.mark.parametrize(("case", "problem"), REFUSALS, ids=names(REFUSALS))
def test_a_maximum_over_nothing_and_what_mxnet_refuses_is_refused(
    case, problem, tmp_path
):
    check_refusal(tmp_path, case, problem)


def test_the_older_pool_after_a_relu_may_have_padding(tmp_path):
    nodes = [
        variable("x"),
        node("Activation", "act", [0], act_type="relu"),
        node(
            "Pooling_v1",
            "pool",
            [1],
            kernel="(2, 2)",
            pad="(1, 1)",
            stride="(2, 2)",
        ),
    ]
    write_symbol(tmp_path / "m.json", nodes)
    model = load_mxnet(tmp_path / "m.json", None, {"x": (1, 1, 2, 2)})
    assert compute(model, [np.float32([[[[-1, 2], [3, -4]]]])]).tolist() == [
        [[[0, 2], [3, 0]]]
    ]
