"""Reductions, positions of extremes, running sums and orders, by what MXNet 1.9.1 gave; ties are where they differ."""

import numpy as np
import pytest

from mrt.frontend.mxnet import OPERATORS
from tests.support.mxnet_rows import check_refusal, check_row, names, row

A = np.array([[-2, -1, 0], [1, 2, 3]], np.float32)
CUBE = np.arange(-2, 10, dtype=np.float32).reshape(2, 3, 2)
GAPS = np.array([[np.nan, 2, 3], [np.nan, np.nan, np.nan]], np.float32)
TIES = np.array([[3, 1, 3, 2], [0, 0, 0, -1]], np.float32)

ROWS = [
    row("sum", A, [3], axis="()", exclude="True"),
    row("sum", A, [[3]], keepdims="True"),
    row("sum", A, A, axis="(0, 1)", exclude="True"),
    row("nansum", GAPS, [5, 0], axis="1"),
    row("nansum", GAPS, [5]),
    row("nanprod", GAPS, [[6], [1]], axis="-1", keepdims="True"),
    row("nanprod", GAPS, [1, 2, 3], axis="1", exclude="True"),
    row("norm", A, [4.3588991]),
    row("norm", A, [[4.3588991]], keepdims="True"),
    row("norm", A, [3, 6], ord="1", axis="1"),
    row("norm", CUBE, [11.135529, 12.884099], axis="(0, 1)", out_dtype="None"),
    row("norm", CUBE, [[[22, 26]]], ord="1", axis="(0, 1)", keepdims="True"),
    row("norm", CUBE, [17.029387], axis="()"),
    row("moments", A, [-1, 2], axes="(1,)"),
    row("moments", A, [2 / 3, 2 / 3], axes="(1,)", output=1),
    row(
        "moments",
        A,
        [[2.25, 2.25, 2.25]],
        axes="(0,)",
        keepdims="True",
        output=1,
    ),
    row("argmax", TIES, [0], axis="None"),
    row("argmax", TIES, [[0]], keepdims="True"),
    row("argmax", TIES, [0, 0], axis="1"),
    row("argmax", TIES, [[0, 0, 0, 0]], axis="-2", keepdims="True"),
    row("argmax", TIES[0], [0], axis="0"),
    row("argmin", TIES, [1, 3], axis="-1"),
    row("argmin", TIES, [7]),
    row("argmax_channel", CUBE, [[2, 2], [2, 2]]),
    row("_np_cumsum", A, [-2, -3, -3, -2, 0, 3]),
    row("_np_cumsum", A, [[-2, -1, 0], [-1, 1, 3]], axis="0"),
    row("topk", TIES, [[0, 2], [0, 1]], k="2"),
    row("topk", TIES, [[1], [3]], is_ascend="True"),
    row("topk", TIES, [[3, 3], [0, 0]], k="2", ret_typ="value"),
    row("topk", TIES, [[1, 2], [-1, 0]], k="2", ret_typ="both", is_ascend="1"),
    row(
        "topk",
        TIES,
        [[1, 3], [3, 0]],
        k="2",
        ret_typ="both",
        is_ascend="1",
        output=1,
    ),
    row("topk", TIES, [[1, 0, 1, 0], [1, 1, 0, 0]], k="2", ret_typ="mask"),
    row(
        "topk",
        TIES,
        [[0, 1, 0, 1], [1, 0, 0, 1]],
        k="2",
        ret_typ="mask",
        is_ascend="True",
    ),
    row("topk", TIES, [[1, 1, 1, 1], [0, 0, 0, 0]], axis="0", ret_typ="mask"),
    row(
        "topk",
        TIES,
        [[1, 0, 1, 1], [0, 0, 0, 0]],
        axis="None",
        k="3",
        ret_typ="mask",
    ),
    row("topk", TIES, [[1, 1, 1, 1], [1, 1, 1, 1]], ret_typ="mask", k="0"),
    row("topk", TIES, [0, 2, 3], axis="None", k="3"),
    row("topk", TIES, [[0, 2, 3, 1], [0, 1, 2, 3]], k="0", dtype="int32"),
    row("topk", TIES, [[0, 0, 0, 0], [1, 1, 1, 1]], k="-1", axis="0"),
    row("sort", TIES, [[1, 2, 3, 3], [-1, 0, 0, 0]]),
    row(
        "sort", TIES, [3, 3, 2, 1, 0, 0, 0, -1], axis="None", is_ascend="False"
    ),
    row("sort", TIES, [[0, 0, 0, -1], [3, 1, 3, 2]], axis="0"),
    row("argsort", TIES, [[1, 3, 0, 2], [3, 0, 1, 2]]),
    row("argsort", TIES, [[0, 2, 3, 1], [0, 1, 2, 3]], is_ascend="False"),
    row("argsort", TIES, [7, 4, 5, 6, 1, 3, 0, 2], axis="None"),
]

REFUSALS = [
    (row("norm", A, A, ord="3"), "ord=3: not supported; supported: 1, 2"),
    (
        row("norm", A, A, out_dtype="float64"),
        "not supported; supported: float32",
    ),
    (row("norm", A, A, axis="(0, -2)"), "axis=(0, -2) names an axis twice"),
    (row("moments", A, A), "no axes, which MXNet refuses"),
    (
        row("argmax", A, A, axis="2"),
        "axis 2 is outside the 2 dimensions of its input",
    ),
    (
        row("argmax_channel", A[0], A),
        "axis 1 is outside the 1 dimensions of its input",
    ),
    (row("topk", TIES, A, k="5"), "k=5 of 4 numbers"),
    (
        row("topk", TIES, A, ret_typ="values"),
        "not supported; supported: indices, value, both, mask",
    ),
]


@pytest.mark.parametrize("case", ROWS, ids=names(ROWS))
def test_a_reduction_or_order_is_that_of_mxnet(case, tmp_path):
    check_row(tmp_path, case)


@pytest.mark.parametrize(("case", "problem"), REFUSALS, ids=names(REFUSALS))
def test_axes_and_kinds_that_do_not_exist_are_refused(case, problem, tmp_path):
    check_refusal(tmp_path, case, problem)


def test_cumsum_is_known_by_both_names():
    assert OPERATORS["cumsum"].handler is OPERATORS["_np_cumsum"].handler
