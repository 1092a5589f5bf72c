"""Moving elements about: numpy says what is expected, and each use was also run on MXNet 1.9.1."""

import numpy as np
import pytest

from tests.support.mxnet_rows import check_refusal, check_row, names, row

X = np.arange(2 * 4 * 7 * 6, dtype=np.float32).reshape(2, 4, 7, 6)
SMALL = np.arange(6, dtype=np.float32).reshape(2, 3)
THIN = np.arange(3, dtype=np.float32).reshape(1, 3, 1)
LIKE = np.zeros((2, 3, 5, 6), np.float32)
BLOCKS = np.arange(16, dtype=np.float32).reshape(1, 4, 2, 2)


def zeros(*shape):
    return np.zeros(shape, np.float32)


ROWS = [
    row("slice_like", [X, LIKE], X[:, :3, :5]),
    row("slice_like", [X, LIKE], X[:, :, :5], axes="(2,)"),
    row("slice_like", [X, zeros(1, 3)], X[:1, :3], axes="(0, -3)"),
    row("slice", X, X[0:2, 3::-1, ::-2], begin="(0, 3, None)", end="(2, None, None)", step="(1, -1, -2)"),
    row("slice", X, X[0:2, -1:0:-1], begin="(0, -1)", end="(2, 0)", step="(1, -1)"),
    row("slice", X, X[0:2, -1:-4:-2], begin="(0, -1)", end="(2, -4)", step="(1, -2)"),
    row("_sparse_slice", X, X[1:2], begin="(1,)", end="(2,)"),
    row("slice_axis", X, X[..., -4:-1], axis="-1", begin="-4", end="-1"),
    row("SliceChannel", X, X[:, 2:], num_outputs="2", output=1),
    row("SliceChannel", X, X[:, 3], num_outputs="4", squeeze_axis="1", output=3),
    row("_split_v2", X, X[:, :, 2:3], indices="(0, 2, 3)", axis="2", output=1),
    row("_split_v2", X, X[:, :, 3:], indices="(0, 2, 3)", axis="2", output=2),
    row("_split_v2", X, X, indices="(0,)"),
    row("_split_v2", X, X[:, 2], indices="(0, 1, 2, 3)", axis="1", squeeze_axis="1", output=2),
    row("_split_v2", X, X[..., 3:], indices="()", sections="2", axis="-1", output=1),
    row("_split_v2", X, X[:, :, 4:], indices="(0, 1)", sections="2", axis="2", output=1),
    row("_split_v2", X, X[:, :, 2:4], indices="()", sections="5", axis="2", output=1),
    row("_split_v2", X, X[1], indices="(0,)", sections="2", axis="0", squeeze_axis="1", output=1),
    row("Crop", X, X[:, :, :3, :2], num_args="1", h_w="(3, 2)"),
    row("Crop", X, X[:, :, 1:4, 2:4], num_args="1", h_w="(3, 2)", offset="(1, 2)"),
    row("Crop", X, X[:, :, 1:5, 1:4], num_args="1", h_w="(4, 3)", center_crop="1", offset="(9, 9)"),
    row("Crop", X, X[:, :, 2:5, 2:4], num_args="1", h_w="(3, 2)", center_crop="1"),
    row("Crop", [X, zeros(1, 1, 3, 4)], X[:, :, 2:5, 1:5], num_args="2", offset="(2, 1)"),
    row("Crop", [X, zeros(1, 1, 4, 3)], X[:, :, 1:5, 1:4], num_args="2", center_crop="True", h_w="(2, 2)"),
    row("Reshape", X, X.reshape(2, 4, 42), shape="(2, 4, -3)", reverse="True"),
    row("Reshape", X, X.reshape(2, 4, 7, 2, 3), shape="(0, 0, 0, -4, -1, 3)"),
    row("Reshape", X, X.reshape(2, 4, 7, 2, 3), shape="(-2, 2, 3, -4)", reverse="True"),
    row("Reshape", X, X.reshape(8, 7, 6, 1), shape="(-3, -2, 1)"),
    row("reshape_like", [X, zeros(8, 42)], X.reshape(8, 42)),
    row("reshape_like", [SMALL, zeros(3, 2, 1, 4)], SMALL.reshape(2, 1, 3), lhs_end="-1", rhs_begin="1", rhs_end="-1"),
    row("reshape_like", [SMALL, zeros(9, 3, 1)], SMALL.reshape(2, 3, 1), lhs_begin="1", lhs_end="2", rhs_begin="-2"),
    row("squeeze", THIN, THIN, axis="()"),
    row("squeeze", THIN, THIN[0, :, 0], axis="(0, 2)"),
    row("expand_dims", SMALL, SMALL[None], axis="-3"),
    row("SwapAxis", X, X.swapaxes(-1, 1), dim1="-1", dim2="1"),
    row("Flatten", SMALL[0], [[0], [1], [2]]),
    row("Concat", [X, X[..., :1]], np.concatenate([X, X[..., :1]], -1), num_args="2", dim="-1"),
    row("_sparse_concat", [SMALL, SMALL], np.concatenate([SMALL, SMALL], 1), num_args="2"),
    row("_rnn_param_concat", [SMALL[0], SMALL[1, :2]], [0, 1, 2, 3, 4], num_args="2", dim="0"),
    row("stack", [SMALL, -SMALL], np.stack([SMALL, -SMALL]), num_args="2"),
    row("stack", [SMALL, -SMALL], np.stack([SMALL, -SMALL], -1), num_args="2", axis="-1"),
    row("stack", SMALL, SMALL[:, None], num_args="1", axis="1"),
    row("tile", SMALL, np.tile(SMALL, 2), reps="2"),
    row("tile", SMALL, np.tile(SMALL, (2, 1, 3)), reps="(2, 1, 3)"),
    row("tile", SMALL, SMALL, reps="()"),
    row("repeat", SMALL, [0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5], repeats="2"),
    row("repeat", SMALL, [[0, 1, 2], [0, 1, 2], [3, 4, 5], [3, 4, 5]], repeats="2", axis="0"),
    row("repeat", SMALL, [[0, 0, 1, 1, 2, 2], [3, 3, 4, 4, 5, 5]], repeats="2", axis="-1"),
    row("reverse", X, X[:, ::-1], axis="(1,)"),
    row("flip", X, X[::-1, :, ::-1], axis="(0, 2)"),
    row("reverse", SMALL, SMALL, axis="()"),
    row("broadcast_to", THIN, np.broadcast_to(THIN, (2, 3, 4)), shape="(2, 0, 4)"),
    row("broadcast_axis", THIN, np.broadcast_to(THIN, (2, 3, 5)), axis="(0, 2)", size="(2, 5)"),
    row("broadcast_axes", THIN, THIN),
    row("broadcast_like", [THIN, zeros(2, 3, 4)], np.broadcast_to(THIN, (2, 3, 4))),
    row("broadcast_like", [THIN, zeros(5, 7)], np.broadcast_to(THIN, (7, 3, 5)), lhs_axes="(0, -1)", rhs_axes="(-1, 0)"),
    row("depth_to_space", BLOCKS, [[[[0, 4, 1, 5], [8, 12, 9, 13], [2, 6, 3, 7], [10, 14, 11, 15]]]], block_size="2"),
    row("depth_to_space", np.arange(8, dtype=np.float32).reshape(1, 8, 1, 1),
        [[[[0, 2], [4, 6]], [[1, 3], [5, 7]]]], block_size="2"),
    row("space_to_depth", BLOCKS.reshape(1, 1, 4, 4),
        [[[[0, 2], [8, 10]], [[1, 3], [9, 11]], [[4, 6], [12, 14]], [[5, 7], [13, 15]]]], block_size="2"),
    row("Pad", X, np.pad(X, ((0, 0), (0, 0), (6, 6), (5, 5)), "reflect"),
        mode="reflect", pad_width="(0, 0, 0, 0, 6, 6, 5, 5)"),
    row("Pad", X[:, :, None], np.pad(X[:, :, None], ((0, 0), (0, 0), (1, 2), (0, 1), (2, 0)), "edge"),
        mode="edge", pad_width="(0, 0, 0, 0, 1, 2, 0, 1, 2, 0)"),
    row("softmax", [SMALL, np.float32([2, 0])], [[0.2689414, 0.7310586, 0], [0, 0, 0]], use_length="True"),
    row("softmax", [SMALL, np.float32([1, 2, 0])], [[1, 0.04742587, 0], [0, 0.95257413, 0]],
        use_length="True", axis="0"),
    row("SVMOutput", SMALL, SMALL, labels=1, margin="1", regularization_coefficient="1", use_linear="False"),
]  # fmt: skip

REFUSALS = [
    (
        row("slice_like", [X, zeros(3, 5)], 0, axes="(-3, 1)"),
        "axis 1 of (2, 4, 7, 6) is smaller than that of (3, 5)",
    ),
    (
        row("slice_like", [X, zeros(1, 2)], 0),
        "have different numbers of dimensions",
    ),
    (
        row("slice", X, 0, begin="(0, 1)", end="(2, 2)", step="(0, 1)"),
        "step holds 0",
    ),
    (
        row(
            "SliceChannel",
            SMALL[0],
            0,
            num_outputs="3",
            axis="0",
            squeeze_axis="1",
        ),
        "to MXNet is an unknown shape",
    ),
    (
        row("_split_v2", X, 0, indices="(1, 3)"),
        "indices=(1, 3) on an axis of size 4: expected 0 first",
    ),
    (row("_split_v2", X, 0, indices="(0, 0, 3)"), "then ever larger ones"),
    (row("_split_v2", X, 0, indices="(0, 9)"), "then ever larger ones"),
    (
        row("_split_v2", X, 0, indices="(0, 1)", squeeze_axis="1"),
        "squeeze_axis=True on parts of size 3",
    ),
    (
        row("_split_v2", X, 0, indices="()", sections="5"),
        "sections=5 on an axis of size 4",
    ),
    (
        row("_split_v2", X, 0, indices="()", sections="-1"),
        "expected an integer from 0 to 10000",
    ),
    (
        row("Crop", X, 0, num_args="1"),
        "h_w=(0, 0) on an input of shape (2, 4, 7, 6)",
    ),
    (
        row("Crop", X, 0, num_args="1", h_w="(8, 2)"),
        "h_w=(8, 2) on an input of shape (2, 4, 7, 6)",
    ),
    (
        row("Crop", X, 0, num_args="1", h_w="(7, 2)", offset="(1, 0)"),
        "offset=(1, 0), h_w=(7, 2) leaves an input",
    ),
    (
        row("Crop", X, 0, num_args="1", h_w="(7,)"),
        "h_w=(7,), offset=(0, 0): expected 2 numbers each",
    ),
    (
        row("Crop", [X, SMALL], 0, num_args="2"),
        "crop_like of shape (2, 3): expected 4 dimensions",
    ),
    (
        row("Crop", X, 0, num_args="3"),
        "num_args='3': not supported; supported: 1, 2",
    ),
    (
        row("reshape_like", [SMALL, zeros(5)], 0),
        "cannot reshape (2, 3) to (5,)",
    ),
    (
        row("reshape_like", [SMALL, zeros(6)], 0, lhs_begin="1", lhs_end="1"),
        "lhs_begin=1, lhs_end=1 of 2 dimensions",
    ),
    (row("squeeze", THIN, 0, axis="(0, 0)"), "axis=(0, 0) names an axis twice"),
    (
        row("stack", [SMALL, SMALL[:1]], 0, num_args="2"),
        "shapes (2, 3) and (1, 3) differ",
    ),
    (
        row("tile", SMALL, 0, reps="(0, 1)"),
        "reps=(0, 1): expected positive numbers",
    ),
    (row("repeat", SMALL, 0, repeats="0"), "expected a positive integer"),
    (
        row("reverse", SMALL, 0, axis="(1, 1)"),
        "axis=(1, 1): expected distinct axes",
    ),
    (
        row("broadcast_to", SMALL, 0, shape="(2, 4)"),
        "an input of shape (2, 3) cannot be broadcast to (2, 4)",
    ),
    (
        row("broadcast_to", SMALL, 0, shape="(2, 2, 3)"),
        "shape=(2, 2, 3) for an input of shape (2, 3)",
    ),
    (
        row("broadcast_axis", THIN, 0, axis="1", size="3"),
        "axis 1 has size 3; expected 1",
    ),
    (
        row("broadcast_axis", THIN, 0, axis="0", size="()"),
        "have different lengths",
    ),
    (row("broadcast_like", [SMALL, zeros(2, 2, 3)], 0), "have different ranks"),
    (
        row("broadcast_like", [SMALL, zeros(2)], 0, lhs_axes="(0,)"),
        "expected as many of each",
    ),
    (
        row("depth_to_space", X, 0, block_size="3"),
        "block_size=3 does not divide an input of shape (2, 4, 7, 6)",
    ),
    (
        row("space_to_depth", X, 0, block_size="2"),
        "block_size=2 does not divide an input of shape (2, 4, 7, 6)",
    ),
    (
        row("softmax", [SMALL, zeros(3)], 0, use_length="True"),
        "length of shape (3,); expected (2,)",
    ),
    (
        row("softmin", SMALL, 0, use_length="True"),
        "use_length='True': not supported",
    ),
    (row("im2col", X, 0), "ONNX has no operator for this function"),
    (row("Correlation", X, 0), "ONNX has no operator for this function"),
    (
        row("GridGenerator", X, 0),
        "where it reads its input depends on computed numbers",
    ),
    (row("CTCLoss", X, 0), "it is a loss, for training only"),
]


@pytest.mark.parametrize("case", ROWS, ids=names(ROWS))
def test_elements_move_where_mxnet_moves_them(case, tmp_path):
    check_row(tmp_path, case)


@pytest.mark.parametrize(("case", "problem"), REFUSALS, ids=names(REFUSALS))
def test_a_move_that_mxnet_refuses_is_refused(case, problem, tmp_path):
    check_refusal(tmp_path, case, problem)
