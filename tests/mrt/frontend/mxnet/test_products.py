"""Products of matrices and interleaved attention, by their definitions in numpy, as MXNet 1.9.1 confirms them."""

import numpy as np
import pytest

from mrt.frontend.mxnet import OPERATORS
from tests.support.mxnet_rows import check_refusal, check_row, names, row

RANDOM = np.random.default_rng(11)


def normal(*shape):
    return RANDOM.standard_normal(shape).astype(np.float32)


A, B, C = normal(2, 3), normal(3, 4), normal(2, 4)
CUBE, OTHER = normal(2, 4, 3), normal(3, 5, 2)
MANY, MORE = normal(2, 4, 5), normal(2, 5, 3)
ROWS_FIRST = (
    normal(4, 2, 5),
    normal(5, 2, 3),
)  # for axis=0: rows, batch, columns
HEADS, SIZE, BATCH = 3, 4, 2
SELF = normal(5, BATCH, HEADS * 3 * SIZE)
QUERIES = normal(5, BATCH, HEADS * SIZE)
KEYS_VALUES = normal(7, BATCH, HEADS * 2 * SIZE)
SELF_WEIGHTS = normal(BATCH * HEADS, 5, 5)
CROSS_WEIGHTS = normal(BATCH * HEADS, 5, 7)


def head(value, parts, part):
    """(time, batch, heads, parts, size) -> (batch * heads, time, size) of one part."""
    split = value.reshape(len(value), BATCH, HEADS, parts, SIZE)[:, :, :, part]
    return split.transpose(1, 2, 0, 3).reshape(BATCH * HEADS, len(value), SIZE)


def scores(queries, keys):
    return queries / np.sqrt(SIZE) @ keys.transpose(0, 2, 1)


def merged(value):
    """(batch * heads, time, size) -> (time, batch, heads * size)."""
    time = value.shape[1]
    return (
        value.reshape(BATCH, HEADS, time, SIZE)
        .transpose(2, 0, 1, 3)
        .reshape(time, BATCH, HEADS * SIZE)
    )


ROWS = [
    row("dot", [A, B], A @ B, forward_stype="default"),
    row("dot", [A.T, B.T], A @ B, transpose_a="True", transpose_b="True"),
    row("dot", [A[0], A[1]], [A[0] @ A[1]]),
    row("dot", [A, B[:, 0]], A @ B[:, 0]),
    row("dot", [CUBE, B], CUBE @ B),
    row("dot", [CUBE, OTHER], np.tensordot(CUBE, OTHER, ([2], [0]))),
    row("dot", [CUBE.transpose(2, 0, 1), OTHER], np.tensordot(CUBE, OTHER, ([2], [0])), transpose_a="True"),
    row("dot", [CUBE, OTHER.transpose(1, 2, 0)], np.tensordot(CUBE, OTHER, ([2], [0])), transpose_b="True"),
    row("batch_dot", [MANY, MORE], MANY @ MORE),
    row("batch_dot", [MANY.swapaxes(1, 2), MORE.swapaxes(1, 2)], MANY @ MORE, transpose_a="1", transpose_b="1"),
    row("_linalg_gemm2", [A, B], A @ B),
    row("_linalg_gemm2", [MANY, MORE.swapaxes(1, 2)], MANY @ MORE / 2, transpose_b="True", alpha="0.5"),
    row("_linalg_gemm2", [*ROWS_FIRST], np.einsum("ibk,kbj->ibj", *ROWS_FIRST), axis="0"),
    row("_linalg_gemm", [A, B, C], A @ B + C),
    row("_linalg_gemm", [A.T, B, C], A @ B / 2 - 2 * C, transpose_a="True", alpha="0.5", beta="-2"),
    row("_linalg_syrk", MANY, MANY @ MANY.swapaxes(1, 2)),
    row("_linalg_syrk", A, A.T @ A * 3, transpose="True", alpha="3"),
    row("diag", [C[0]], np.diag(C[0])),
    row("diag", [C[0, :2]], [[0, 0, 0], [C[0, 0], 0, 0], [0, C[0, 1], 0]], k="-1"),
    row("diag", [B], [B[0, 1], B[1, 2], B[2, 3]], k="1"),
    row("diag", [CUBE], np.stack([CUBE[:, 1, 0], CUBE[:, 2, 1], CUBE[:, 3, 2]], -1), k="-1", axis1="1", axis2="-1"),
    row("_contrib_div_sqrt_dim", MANY, MANY / np.sqrt(5)),
    row("_contrib_interleaved_matmul_selfatt_qk", SELF, scores(head(SELF, 3, 0), head(SELF, 3, 1)), heads="3"),
    row(
        "_contrib_interleaved_matmul_selfatt_valatt", [SELF, SELF_WEIGHTS],
        merged(SELF_WEIGHTS @ head(SELF, 3, 2)), heads="3",
    ),
    row(
        "_contrib_interleaved_matmul_encdec_qk", [QUERIES, KEYS_VALUES],
        scores(head(QUERIES, 1, 0), head(KEYS_VALUES, 2, 0)), heads="3",
    ),
    row(
        "_contrib_interleaved_matmul_encdec_valatt", [KEYS_VALUES, CROSS_WEIGHTS],
        merged(CROSS_WEIGHTS @ head(KEYS_VALUES, 2, 1)), heads="3",
    ),
]  # fmt: skip

REFUSALS = [
    (row("dot", [A, A], A), "axes of 3 and 2 numbers are multiplied"),
    (row("dot", [A[0], A[0]], A, transpose_b="True"), "two vectors, one transposed, which MXNet refuses"),
    (row("batch_dot", [A, B], A), "has 2 dimensions; expected at least 3"),
    (row("batch_dot", [MANY[:1], MORE], A), "shapes (1, 4, 5), (2, 5, 3): expected matrices, with the same axes"),
    (row("batch_dot", [MANY, MANY], A), "shapes do not fit"),
    (row("_linalg_gemm2", [MANY, MORE], A, axis="2"), "axis=2 is the last one, that of columns"),
    (row("_linalg_gemm2", [MANY, A], A), "inputs of 2 and 3 dimensions; expected the same number"),
    (row("_linalg_gemm", [A, B, A], A), "a product of shape (2, 4) and C of shape (2, 3) differ"),
    (row("_linalg_potrf", A, A), "ONNX has no operator that factors matrices"),
    (row("khatri_rao", [A, B], A), "ONNX has no operator for this function"),
    (row("diag", A, A, k="3"), "k=3 is outside a matrix of 2 rows and 3 columns"),
    (row("diag", A, A, axis1="1"), "axis1 and axis2 are both 1"),
    (row("diag", A[0], A, k="1000000"), "1000006000009 numbers, with which all constants would have more than 2^28"),
    (row("_contrib_interleaved_matmul_selfatt_qk", SELF, A, heads="5"), "heads=5, each of 3 parts, do not divide 36"),
    (row("_contrib_interleaved_matmul_selfatt_qk", A, A, heads="1"), "expected (time, batch, heads * 3 * size)"),
    (row("_contrib_interleaved_matmul_selfatt_valatt", [SELF, CROSS_WEIGHTS], A, heads="3"),
     "attention (6, 5, 7) does not fit the values (6, 5, 4) of all heads"),
    (row("_contrib_interleaved_matmul_encdec_qk", [QUERIES[:, :1], KEYS_VALUES], A, heads="3"),
     "queries (3, 5, 4) and keys (6, 7, 4) do not fit"),
]  # fmt: skip


@pytest.mark.parametrize("case", ROWS, ids=names(ROWS))
def test_a_product_is_that_of_mxnet(case, tmp_path):
    check_row(tmp_path, case)


@pytest.mark.parametrize(("case", "problem"), REFUSALS, ids=names(REFUSALS))
def test_matrices_that_do_not_fit_are_refused(case, problem, tmp_path):
    check_refusal(tmp_path, case, problem)


@pytest.mark.parametrize("name", ["linalg_gemm", "linalg_gemm2", "linalg_syrk"])
def test_the_public_name_is_the_same_operator(name):
    assert OPERATORS[name].handler is OPERATORS[f"_{name}"].handler
