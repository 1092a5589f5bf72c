"""Functions of one number, by what MXNet 1.9.1 gave for them; halfway cases and the largest odd floats included."""

import math

import numpy as np
import pytest

from mrt.frontend.mxnet import OPERATORS
from tests.support.mxnet_rows import check_refusal, check_row, names, row

HALVES = np.array(
    [
        -2.5,
        -1.5,
        -0.5,
        -0.49999997,
        0,
        0.49999997,
        0.5,
        1.5,
        2.5,
        8388609,
        -8388609,
    ],
    np.float32,
)
X = np.array([-0.75, -0.25, 0, 0.5, 0.875], np.float32)
LARGE = np.array([1, 1.5, 8, 1000], np.float32)
ODD = np.array([-27, -1, 0, 0.125, 1000], np.float32)
DISTANCES = np.array([0.1, -0.1, 0.3, 5.5, -5.5, 0, 1e10], np.float32)

ROWS = [
    row("round", HALVES, [-3, -2, -1, 0, 0, 0, 1, 2, 3, 8388609, -8388609]),
    row(
        "_contrib_round_ste",
        HALVES,
        [-3, -2, -1, 0, 0, 0, 1, 2, 3, 8388609, -8388609],
    ),
    row("rint", HALVES, [-3, -2, -1, 0, 0, 0, 0, 1, 2, 8388609, -8388609]),
    row("fix", HALVES, [-2, -1, 0, 0, 0, 0, 0, 1, 2, 8388609, -8388609]),
    row("_contrib_sign_ste", HALVES, [-1, -1, -1, -1, 0, 1, 1, 1, 1, 1, -1]),
    row("expm1", X, np.expm1(X)),
    row("log1p", X, np.log1p(X)),
    row("log2", LARGE, [0, 0.5849625, 3, 9.9657843]),
    row("log10", LARGE, [0, 0.17609126, 0.90308999, 3]),
    row("cbrt", ODD, [-3, -1, 0, 0.5, 10]),
    row("rcbrt", ODD, [-1 / 3, -1, math.inf, 2, 0.1]),
    row("sin", X, np.sin(X)),
    row("cos", X, np.cos(X)),
    row("tan", X, np.tan(X)),
    row("arcsin", X, np.arcsin(X)),
    row("arccos", X, np.arccos(X)),
    row("arctan", X, np.arctan(X)),
    row("sinh", X, np.sinh(X)),
    row("cosh", X, np.cosh(X)),
    row("arcsinh", X, np.arcsinh(X)),
    row("arccosh", LARGE, np.arccosh(LARGE)),
    row("arctanh", X, np.arctanh(X)),
    row("degrees", X, [-42.971836, -14.323945, 0, 28.647890, 50.133808]),
    row("radians", LARGE, [0.01745329, 0.02617994, 0.13962634, 17.453293]),
    row("logical_not", X, [0, 0, 1, 0, 0]),
    row("hard_sigmoid", X, [0, 0, 0.05, 0.55, 0.925], alpha="1", beta="0.05"),
    row("smooth_l1", DISTANCES, [0.005, 0.005, 0.045, 5, 5, 0, 1e10]),
    row(
        "smooth_l1",
        DISTANCES,
        [0.02, 0.02, 0.175, 5.375, 5.375, 0, 1e10],
        scalar="2.0",
    ),
    row("smooth_l1", DISTANCES, [0, 0, 0, 0, 0, 0, 0], scalar="0"),
    row(
        "_contrib_quadratic",
        LARGE,
        [1.5, 3.125, 47, 501999],
        a="0.5",
        b="2",
        c="-1",
    ),
]

REFUSALS = [
    (
        row("gamma", X, X),
        "unsupported operator: ONNX has no operator for this function",
    ),
    (
        row("gammaln", X, X),
        "unsupported operator: ONNX has no operator for this function",
    ),
    (
        row("erfinv", X, X),
        "unsupported operator: ONNX has no operator for this function",
    ),
    (row("_shuffle", X, X), "unsupported operator: its result is random"),
    (
        row("_contrib_boolean_mask", [X, X], X),
        "how large its result is depends on the numbers that it reads",
    ),
    (
        row("Custom", X, X, op_type="my_layer"),
        "op_type='my_layer' is code of its own, which is not in the file",
    ),
    (row("smooth_l1", X, X, scalar="inf"), "expected a finite number"),
]


@pytest.mark.parametrize("case", ROWS, ids=names(ROWS))
def test_a_function_is_that_of_mxnet(case, tmp_path):
    check_row(tmp_path, case)


@pytest.mark.parametrize(("case", "problem"), REFUSALS, ids=names(REFUSALS))
def test_what_has_no_onnx_form_is_refused_with_the_reason(
    case, problem, tmp_path
):
    check_refusal(tmp_path, case, problem)


def test_trunc_is_fix():
    assert OPERATORS["trunc"].handler is OPERATORS["fix"].handler
