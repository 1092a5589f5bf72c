"""Lookups by index and sequences of several lengths, by what MXNet 1.9.1 gave for indices outside and with fractions."""

import numpy as np
import pytest

from mrt.frontend.mxnet import OPERATORS
from tests.support.mxnet_rows import check_refusal, check_row, names, row

W = np.arange(10, dtype=np.float32).reshape(5, 2)
INDEX = np.array([-1, 0, 7, 2.9, -0.5], np.float32)
STEPS = np.arange(12, dtype=np.float32).reshape(
    3, 2, 2
)  # three steps of a batch of two
LENGTHS = np.array([1.7, 2], np.float32)
EYE = [[1, 0, 0], [0, 1, 0], [0, 0, 1]]

ROWS = [
    row("Embedding", INDEX, W[[0, 0, 4, 2, 0]], [W], input_dim="5", output_dim="2", sparse_grad="False"),
    row("_contrib_SparseEmbedding", INDEX[1:2], W[:1], [W], input_dim="5", output_dim="2", deterministic="False"),
    row("take", [W, INDEX], W[[0, 0, 4, 2, 0]]),
    row("take", [W, INDEX[:4].reshape(2, 2)], W[[0, 0, 4, 2]].reshape(2, 2, 2)),
    row("take", [W, np.float32([-1, 0, 7, -6, 4.5, -0.5])], W[[4, 0, 2, 4, 4, 0]], mode="wrap"),
    row("take", [W, np.float32([0, 1.7, 5, -3])], W[:, [0, 1, 1, 0]], axis="1"),
    row("take", [W, np.float32([0, 1.7, 5, -3])], W[:, [0, 1, 1, 1]], axis="-1", mode="wrap"),
    row("take", [W, np.float32([3, 1])], W[[3, 1]], mode="raise"),
    row("batch_take", [W, np.float32([0, 1, 5, -1, 1])], [0, 3, 5, 6, 9]),
    row("pick", [W, np.float32([0, 1, 5, -1, 1.7])], [0, 3, 5, 6, 9]),
    row("pick", [W, np.float32([[0], [1], [5], [-1], [1.7]])], [[0], [3], [5], [6], [9]], keepdims="True"),
    row("pick", [W, np.float32([0, 1, 5, -1, -3])], [0, 3, 5, 7, 9], mode="wrap"),
    row("pick", [W, np.float32([3, 2])], [6, 5], axis="0"),
    row("pick", [W, np.float32([[4, 1]])], [[8, 3]], axis="0", keepdims="True"),
    row("pick", [W[:, 0], np.float32([2])], [4]),
    row("gather_nd", [W, np.float32([[0, 1.7, -1], [1, 0, -1]])], [1, 2, 9]),
    row("gather_nd", [W, np.float32([[0, 4]])], W[[0, 4]]),
    row("gather_nd", [W, np.float32([[[0], [-5]], [[1], [1]]])], [[1], [1]]),
    row("one_hot", np.float32([0, 2.9, -1, 5, -0.5]), [EYE[0], EYE[2], [0] * 3, [0] * 3, EYE[0]], depth="3"),
    row("one_hot", np.float32([[0, 1]]), [[[5, -1], [-1, 5]]], depth="2", on_value="5", off_value="-1"),
    row("one_hot", np.float32([1]), [[0, 2]], depth="2", on_value="2.5", off_value="0.5", dtype="int32"),
    row("SequenceMask", STEPS, STEPS),
    row(
        "SequenceMask", [STEPS, LENGTHS], [[[0, 1], [2, 3]], [[-7, -7], [6, 7]], [[-7, -7], [-7, -7]]],
        use_sequence_length="True", value="-7",
    ),
    row("SequenceMask", [STEPS[:, :, 0], np.float32([1, 2, 0])], [[0, 0], [4, 6], [0, 0]],
        use_sequence_length="True", axis="1"),
    row("SequenceLast", STEPS, [[8, 9], [10, 11]]),
    row("SequenceLast", STEPS, [[2, 3], [6, 7], [10, 11]], axis="1"),
    row("SequenceLast", [STEPS, LENGTHS], [[0, 1], [6, 7]], use_sequence_length="True"),
    row("SequenceLast", [STEPS, np.float32([1, 2, 2])], [[0, 1], [6, 7], [10, 11]],
        use_sequence_length="True", axis="1"),
    row("SequenceLast", [STEPS[:, :, 0], np.float32([1, 3])], [0, 10], use_sequence_length="True"),
    row("SequenceReverse", STEPS, STEPS[::-1]),
    row("SequenceReverse", [STEPS, np.float32([1, 2])], [[[0, 1], [6, 7]], [[4, 5], [2, 3]], [[8, 9], [10, 11]]],
        use_sequence_length="True"),
]  # fmt: skip

REFUSALS = [
    (
        row(
            "Embedding",
            INDEX,
            W,
            [W],
            input_dim="5",
            output_dim="2",
            dtype="int32",
        ),
        "supported: float32, float64",
    ),
    (
        row("take", [W, INDEX], W, mode="fill"),
        "mode='fill': not supported; supported: clip, wrap, raise",
    ),
    (
        row("take", [W, INDEX], W, axis="2"),
        "axis 2 is outside the 2 dimensions",
    ),
    (row("batch_take", [STEPS, INDEX], W), "has 3 dimensions; expected 2"),
    (row("batch_take", [W, INDEX[:4]], W), "4 indices for 5 rows"),
    (
        row("pick", [W, INDEX[:4]], W),
        "an index of shape (4,); expected (5,) or (5, 1)",
    ),
    (
        row("gather_nd", [W, INDEX], W),
        "indices of shape (5,) for (5, 2); expected coordinates",
    ),
    (
        row("gather_nd", [W, STEPS], W),
        "indices of shape (3, 2, 2) for (5, 2); expected coordinates",
    ),
    (
        row("one_hot", INDEX, W, depth="2000000000"),
        "depth=2000000000 of (5,): more than 2^28 numbers",
    ),
    (
        row("SequenceMask", [STEPS, INDEX], W, use_sequence_length="True"),
        "lengths of shape (5,); expected (2,)",
    ),
    (
        row("SequenceLast", STEPS, W, axis="2"),
        "axis=2: not supported; supported: 0, 1",
    ),
    (row("SequenceLast", INDEX, W), "has 1 dimensions; expected at least 2"),
    (
        row("SequenceReverse", STEPS, W, axis="1"),
        "axis=1, which MXNet refuses; expected 0",
    ),
    (
        row("scatter_nd", [W, INDEX], W, shape="(5,)"),
        "indices named twice leave its result undefined",
    ),
]


@pytest.mark.parametrize("case", ROWS, ids=names(ROWS))
def test_a_lookup_finds_what_mxnet_finds(case, tmp_path):
    check_row(tmp_path, case)


@pytest.mark.parametrize(("case", "problem"), REFUSALS, ids=names(REFUSALS))
def test_indices_that_do_not_fit_are_refused(case, problem, tmp_path):
    check_refusal(tmp_path, case, problem)


def test_pick_has_an_older_name():
    assert (
        OPERATORS["choose_element_0index"].handler is OPERATORS["pick"].handler
    )
