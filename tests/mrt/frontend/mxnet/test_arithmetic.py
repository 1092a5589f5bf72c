"""Arithmetic, comparisons and casts, by what MXNet 1.9.1 gave: results are numbers, and a remainder follows the divisor."""

import numpy as np
import pytest

from mrt.frontend.mxnet import OPERATORS
from tests.support.mxnet_rows import check_refusal, check_row, names, row

P = np.array([5.5, -5.5, 0.25, 0, -0.25, 5], np.float32)
Q = np.array([2.5, 2.5, -2.5, 0, 0, -2.5], np.float32)
LEFT = np.array([[1, 2, 0], [-1, 0, 3]], np.float32)
RIGHT = np.array([[1, 1, 0], [2, 0.5, 3]], np.float32)
FRACTIONS = np.array([2.7, -2.7, 0, 0.5, -0.5, 100.9], np.float32)
BYTES = np.array([2.7, 100.9, 300, -1, 128, -129], np.float32)

COMPARED = {  # LEFT with RIGHT, LEFT with the row (1, 0, 3), LEFT with 0.5
    "equal": (
        [[1, 0, 1], [0, 0, 1]],
        [[1, 0, 0], [0, 1, 1]],
        [[0, 0, 0], [0, 0, 0]],
    ),
    "not_equal": (
        [[0, 1, 0], [1, 1, 0]],
        [[0, 1, 1], [1, 0, 0]],
        [[1, 1, 1], [1, 1, 1]],
    ),
    "greater": (
        [[0, 1, 0], [0, 0, 0]],
        [[0, 1, 0], [0, 0, 0]],
        [[1, 1, 0], [0, 0, 1]],
    ),
    "greater_equal": (
        [[1, 1, 1], [0, 0, 1]],
        [[1, 1, 0], [0, 1, 1]],
        [[1, 1, 0], [0, 0, 1]],
    ),
    "lesser": (
        [[0, 0, 0], [1, 1, 0]],
        [[0, 0, 1], [1, 0, 0]],
        [[0, 0, 1], [1, 1, 0]],
    ),
    "lesser_equal": (
        [[1, 0, 1], [1, 1, 1]],
        [[1, 0, 1], [1, 1, 1]],
        [[0, 0, 1], [1, 1, 0]],
    ),
    "logical_and": (
        [[1, 1, 0], [1, 0, 1]],
        [[1, 0, 0], [1, 0, 1]],
        [[1, 1, 0], [1, 0, 1]],
    ),
    "logical_or": (
        [[1, 1, 0], [1, 1, 1]],
        [[1, 1, 1], [1, 0, 1]],
        [[1, 1, 1], [1, 1, 1]],
    ),
    "logical_xor": (
        [[0, 0, 0], [0, 1, 0]],
        [[0, 1, 1], [0, 0, 0]],
        [[0, 0, 1], [0, 1, 0]],
    ),
}
ROW = np.array([1, 0, 3], np.float32)

ROWS = [
    row("_mod", [P, Q], [0.5, 2, -2.25, 0, 0, 0]),
    row("broadcast_mod", [P, Q[:1]], [0.5, 2, 0.25, 0, 2.25, 0]),
    row("_mod_scalar", P, [0.5, 2, 0.25, 0, 2.25, 0], scalar="2.5"),
    row("_mod_scalar", P, [-2, -0.5, -2.25, 0, -0.25, 0], scalar="-2.5"),
    row("_mod_scalar", P, [0, 0, 0, 0, 0, 0], scalar="0"),
    row("_rmod_scalar", P, [2.5, -3, 0, 0, 0, 2.5], scalar="2.5"),
    row("_rmod_scalar", P, [3, -2.5, 0, 0, 0, 2.5], scalar="-2.5"),
    row("_hypot", [P[:3], Q[:3]], [6.0415230, 6.0415230, 2.5124689]),
    row(
        "broadcast_hypot",
        [LEFT, RIGHT[:1]],
        [[1.4142135, 2.2360680, 0], [1.4142135, 1, 3]],
    ),
    row(
        "_hypot_scalar",
        LEFT,
        [[4.1231056, 4.4721360, 4], [4.1231056, 4, 5]],
        scalar="4",
    ),
    row("_plus_scalar", LEFT, LEFT + 1),
    row("_rdiv_scalar", RIGHT[:, :2], [[1, 1], [0.5, 2]]),
    row("_scatter_plus_scalar", LEFT, LEFT + 2, scalar="2"),
    row("_scatter_minus_scalar", LEFT, LEFT - 2, scalar="2"),
    row(
        "_scatter_elemwise_div",
        [LEFT[:, :2], RIGHT[:, :2]],
        [[1, 2], [-0.5, 0]],
    ),
    row("_contrib_gradientmultiplier", LEFT, LEFT, scalar="-1"),
    row("_identity_with_attr_like_rhs", [LEFT, RIGHT], LEFT),
    row("_equal", [np.float32([np.nan, 1])] * 2, [0, 1]),
    row("_not_equal", [np.float32([np.nan, 1])] * 2, [1, 0]),
    row("_greater_scalar", np.float32([0.7, 0.70000005]), [0, 1], scalar="0.7"),
    *(
        case
        for word, (same, with_row, with_number) in COMPARED.items()
        for case in (
            row(f"_{word}", [LEFT, RIGHT], same),
            row(f"broadcast_{word}", [LEFT, ROW], with_row),
            row(f"_{word}_scalar", LEFT, with_number, scalar="0.5"),
        )
    ),
    row(
        "where",
        [np.float32([1, 0, -0.5, np.nan]), P[:4], Q[:4]],
        [5.5, 2.5, 0.25, 0],
    ),
    row("where", [np.float32([1, 0]), LEFT, RIGHT], [[1, 2, 0], [2, 0.5, 3]]),
    row(
        "where", [np.float32([[0], [1]]), LEFT, RIGHT], [[1, 1, 0], [-1, 0, 3]]
    ),
    row("Cast", FRACTIONS, [2, -2, 0, 0, 0, 100], dtype="int32"),
    row("Cast", FRACTIONS, [2, -2, 0, 0, 0, 100], dtype="int64"),
    row("Cast", BYTES, [2, 100, 44, -1, -128, 127], dtype="int8"),
    row("Cast", BYTES, [2, 100, 44, 255, 128, 127], dtype="uint8"),
    row("Cast", FRACTIONS, [1, 1, 0, 1, 1, 1], dtype="bool"),
    row("Cast", FRACTIONS, FRACTIONS, dtype="float64"),
    row("amp_cast", FRACTIONS, FRACTIONS, dtype="float16"),
    row(
        "amp_multicast",
        [LEFT, P],
        P,
        num_outputs="2",
        cast_narrow="True",
        output=1,
    ),
]

ALIASES = {
    "_Mod": "_mod", "_ModScalar": "_mod_scalar", "_RModScalar": "_rmod_scalar", "_Hypot": "_hypot",
    "_HypotScalar": "_hypot_scalar", "_Equal": "_equal", "_Not_Equal": "_not_equal", "_Greater": "_greater",
    "_Greater_Equal": "_greater_equal", "_Lesser": "_lesser", "_Lesser_Equal": "_lesser_equal",
    "_Logical_And": "_logical_and", "_Logical_Or": "_logical_or", "_Logical_Xor": "_logical_xor",
    "_EqualScalar": "_equal_scalar", "_NotEqualScalar": "_not_equal_scalar", "_GreaterScalar": "_greater_scalar",
    "_GreaterEqualScalar": "_greater_equal_scalar", "_LesserScalar": "_lesser_scalar",
    "_LesserEqualScalar": "_lesser_equal_scalar", "_LogicalAndScalar": "_logical_and_scalar",
    "_LogicalOrScalar": "_logical_or_scalar", "_LogicalXorScalar": "_logical_xor_scalar", "_copyto": "identity",
}  # fmt: skip

REFUSALS = [
    (
        row("_greater", [LEFT, RIGHT[:1]], LEFT),
        "shapes (2, 3) and (1, 3) differ",
    ),
    (row("_mod", [LEFT, RIGHT[:1]], LEFT), "shapes (2, 3) and (1, 3) differ"),
    (
        row("_identity_with_attr_like_rhs", [LEFT, RIGHT[:1]], LEFT),
        "shapes (2, 3) and (1, 3) differ",
    ),
    (
        row("where", [LEFT, LEFT, RIGHT[:1]], LEFT),
        "shapes (2, 3) and (1, 3) of x and y differ",
    ),
    (
        row("where", [P, LEFT, RIGHT], LEFT),
        "a condition of shape (6,) for (2, 3); expected (2, 3) or (2,)",
    ),
    (
        row("amp_cast", LEFT, LEFT, dtype="int32"),
        "not supported; supported: float32, float64, float16",
    ),
    (row("Cast", LEFT, LEFT), "attribute 'dtype' is missing"),
    (
        row("amp_multicast", [LEFT], LEFT, num_outputs="2"),
        "1 inputs; expected 2",
    ),
]


@pytest.mark.parametrize("case", ROWS, ids=names(ROWS))
def test_numbers_are_those_of_mxnet(case, tmp_path):
    check_row(tmp_path, case)


@pytest.mark.parametrize(("case", "problem"), REFUSALS, ids=names(REFUSALS))
def test_shapes_and_dtypes_that_do_not_fit_are_refused(case, problem, tmp_path):
    check_refusal(tmp_path, case, problem)


@pytest.mark.parametrize("alias", ALIASES)
def test_an_older_name_is_the_same_operator(alias):
    assert OPERATORS[alias].handler is OPERATORS[ALIASES[alias]].handler


BROADCAST = [
    "broadcast_equal", "broadcast_not_equal", "broadcast_greater", "broadcast_greater_equal", "broadcast_lesser",
    "broadcast_lesser_equal", "broadcast_logical_and", "broadcast_logical_or", "broadcast_logical_xor",
]  # fmt: skip


def test_every_comparison_has_rows_in_its_three_forms():
    assert [f"broadcast_{word}" for word in COMPARED] == BROADCAST
    for word in COMPARED:
        assert {
            f"_{word}",
            f"broadcast_{word}",
            f"_{word}_scalar",
        } <= OPERATORS.keys()
