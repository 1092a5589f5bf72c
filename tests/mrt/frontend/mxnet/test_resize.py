"""Convolutions of one and three axes and every way to resize, with the numbers that MXNet 1.9.1 gave for each row."""

import numpy as np
import pytest

from tests.support.mxnet_rows import (
    check_refusal,
    check_row,
    compute,
    import_row,
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


def channels_last(array):
    """A picture or a weight with its second axis moved to the end."""
    return np.moveaxis(array, 1, -1)


X, W = numbers(1, 4, 5, 4), numbers(6, 2, 3, 2)
BACK = numbers(4, 3, 3, 2)
GROUPED = {
    "kernel": "(3, 2)",
    "num_filter": "6",
    "num_group": "2",
    "stride": "(2, 1)",
    "pad": "(1, 0)",
}

ROWS = [
    row("_contrib_AdaptiveAvgPooling2D", numbers(1, 1, 3, 5), np.reshape([-0.6666667, 0.5, -0.5, 0.6666667], (1, 1, 2,
        2)), output_size="2"),
    row("_contrib_AdaptiveAvgPooling2D", numbers(1, 2, 3, 2), np.reshape([-3.5, 0, 3.5, -0.5, 0.25, 1, 0, 0.75, 1.5,
        -2.5, -1.75, -1], (1, 2, 2, 3)), output_size="(2, 3)"),
    row("_contrib_AdaptiveAvgPooling2D", numbers(1, 1, 4, 4), np.reshape([-2, -0.5, 1, 2.5, -1, 0.5, 2, -2], (1, 1, 2,
        4)), output_size="(2, 4)"),
    row("_contrib_AdaptiveAvgPooling2D", numbers(1, 2, 3, 2), np.reshape([-0.3333333, -0.5], (1, 2, 1, 1)),
        output_size="()"),
    row("Convolution", numbers(1, 2, 5), np.reshape([-19, -29, -28, -13, 34, -15], (1, 2, 3)), [numbers(2, 1, 3),
        numbers(2)], kernel="(3,)", num_filter="2", num_group="2", pad="(1,)", stride="(2,)"),
    row("Convolution", numbers(1, 1, 2, 3, 3), np.reshape([3, -25, 31, -32, -15, -28], (1, 1, 1, 3, 2)), [numbers(1,
        1, 2, 2, 2)], kernel="(2, 2, 2)", num_filter="1", no_bias="1", pad="(0, 1, 0)", dilate="(1, 2, 1)"),
    row("Deconvolution", numbers(1, 2, 3), np.reshape([-5, -10, 5, -12, -7, 13], (1, 1, 6)), [numbers(2, 1, 3)],
        kernel="(3,)", num_filter="1", stride="(2,)", pad="(1,)", adj="(1,)"),
    row("Deconvolution", numbers(1, 1, 1, 2, 2), np.reshape([20, -25, -1, 5, -34, 5, 5, -34, 5, -1, -25, 20, -10, 12,
        -11, -25, 3, -5, -7, 6, -20, -13, 15, -5], (1, 1, 2, 4, 3)), [numbers(1, 1, 2, 2, 2), numbers(1)],
        kernel="(2, 2, 2)", num_filter="1", no_bias="0", stride="(1, 2, 1)"),
    row("Deconvolution", numbers(1, 1, 2, 2), np.reshape([-25, -5, 25, 2, -6, -10, -4, 7, 10, -18, -10, -2, 31, 5,
        -15, -8, 0, 28, 0, -20, -10, 10, -21, -4, 10, -11, 17, 7, -11, -17, -4, 4, 0, -10, 25, -2, 6, -3, -15, 20],
        (1, 2, 4, 5)), [numbers(1, 2, 3, 3)], kernel="(3, 3)", num_filter="2", stride="(2, 2)", target_shape="(4, 5)",
        pad="(1, 0)", adj="(1, 0)"),
    row("UpSampling", [numbers(1, 1, 1, 2), numbers(1, 1, 2, 4)], np.reshape([-5, -5, -5, -5, 2, 2, 2, 2, -5, -5, -5,
        -5, 2, 2, 2, 2, -5, -5, -5, -5, 2, 2, 2, 2, -5, -5, -5, -5, 2, 2, 2, 2, -5, -5, 2, 2, -2, -2, 5, 5, -5, -5, 2,
        2, -2, -2, 5, 5, 1, 1, -3, -3, 4, 4, 0, 0, 1, 1, -3, -3, 4, 4, 0, 0], (1, 2, 4, 8)), scale="4",
        sample_type="nearest", num_args="2"),
    row("UpSampling", [numbers(1, 1, 1, 2), numbers(1, 1, 2, 4)], np.reshape([-10, -3, 0, 7, -4, -8, 6, 2], (1, 1, 2,
        4)), scale="2", sample_type="nearest", num_args="2", multi_input_mode="sum"),
    row("UpSampling", numbers(1, 2, 2, 2), np.reshape([15, -18, -6, 8, -19, -24, 31, -12, 16, -24, -24, 30, -6, -18,
        25, -5, -1, -14, 5, 15, 21, 7, -34, -3, -4, -36, 11, 12, 20, 4, -12, 0], (1, 2, 4, 4)), [numbers(2, 1, 4, 4)],
        scale="2", sample_type="bilinear", num_filter="2", num_args="2"),
    row("UpSampling", numbers(1, 1, 2, 2), np.reshape([-20, 0, 14, -7, 0, -8, 25, -10, 8, -35, 4, -4, 11, -16, -33,
        22, -2, 25, -3, 25, -11, 22, -10, -16, 10, -4, -1, -35, 10, -10, 6, -8, 5, -7, 20, 0], (1, 1, 6, 6)),
        [numbers(1, 1, 5, 5)], scale="3", sample_type="bilinear", num_filter="1", num_args="2"),
    row("_contrib_BilinearResize2D", numbers(1, 1, 2, 3), np.reshape([-5, -1.5, 2, 0, -2, 0, 0.75, 1.5, -0.5, -2.5, 5,
        3, 1, -1, -3], (1, 1, 3, 5)), height="3", width="5"),
    row("_contrib_BilinearResize2D", numbers(1, 1, 2, 3), np.reshape([-5, -2.2, 2, -0.4000006, -2, 0, 0.6, 1.5,
        -0.9000006, -2.5, 5, 3.4, 1, -1.400001, -3], (1, 1, 3, 5)), height="3", width="5", align_corners="False"),
    row("_contrib_BilinearResize2D", numbers(1, 1, 3, 4), np.reshape([-1.5, 1.5], (1, 1, 1, 2)), height="1",
        width="2", align_corners="False"),
    row("_contrib_BilinearResize2D", numbers(1, 1, 3, 4), np.reshape([-5], (1, 1, 1, 1)), height="1", width="1"),
    row("_contrib_BilinearResize2D", numbers(1, 1, 3, 4), np.reshape([-5, 5, -2, 2.5, 1, 0, -1.5, -2.5, -4, -5], (1,
        1, 5, 2)), mode="odd_scale", scale_height="2", scale_width="0.5"),
    row("_contrib_BilinearResize2D", numbers(1, 1, 3, 4), np.reshape([-5, 5, -0.9999998, 1.666667, -0.6666669,
        -1.666667, -4, -5], (1, 1, 4, 2)), mode="size", scale_height="1.5", scale_width="0.5"),
    row("_contrib_BilinearResize2D", [numbers(1, 1, 3, 4), numbers(1, 1, 2, 2)], np.reshape([-5, 5, -4, -5], (1, 1, 2,
        2)), mode="like"),
    row("_contrib_BilinearResize2D", numbers(1, 1, 3, 2), np.reshape([-5, 2, 1, -3], (1, 1, 2, 2)),
        mode="to_even_down"),
    row("_contrib_BilinearResize2D", numbers(1, 1, 3, 2), np.reshape([-5, 2, -3, 4, -0.9999999, 2.333333, 1, -3], (1,
        1, 4, 2)), mode="to_even_up"),
    row("_contrib_BilinearResize2D", numbers(1, 1, 3, 2), np.reshape([-5, -2, 1], (1, 1, 3, 1)), mode="to_odd_down"),
    row("_contrib_BilinearResize2D", numbers(1, 1, 3, 2), np.reshape([-5, -1.5, 2, -2, 1.5, 5, 1, -1, -3], (1, 1, 3,
        3)), mode="to_odd_up"),
]  # fmt: skip

REFUSALS = [
    (row("Deconvolution", X, 0, [BACK], kernel="(3, 2)", num_filter="3", adj="(1, 0)"),
     "adj=(1, 0): expected less than stride=(1, 1)"),
    (row("Deconvolution", X, 0, [BACK], kernel="(3, 2)", num_filter="3", stride="(2, 2)", target_shape="(5,)"),
     "target_shape=(5,) does not fit kernel=(3, 2)"),
    (row("UpSampling", [numbers(1, 1, 2, 3), numbers(1, 1, 3, 6)], 0, scale="4", sample_type="nearest", num_args="2"),
     "an input of shape (1, 1, 3, 6) does not grow to [8, 12]"),
    (row("UpSampling", [numbers(1, 2, 2, 3), numbers(1, 1, 2, 3)], 0, scale="4", sample_type="nearest", num_args="2",
         multi_input_mode="sum"), "multi_input_mode=sum of inputs of different shapes"),
    (row("UpSampling", X, 0, [numbers(4, 1, 4, 4)], scale="2", sample_type="bilinear", num_filter="3", num_args="2"),
     "num_filter=3 for 4 channels; expected as many"),
    (row("_contrib_BilinearResize2D", X, 0, mode="odd_scale"), "mode=odd_scale: scale_height=None"),
    (row("_contrib_BilinearResize2D", X, 0, height="0"), "a result of 0 rows and 1 columns"),
    (row("_contrib_BilinearResize2D", [X, numbers(2)], 0, mode="like"), "like of shape (2,): expected 4 dimensions"),
    (row("_contrib_AdaptiveAvgPooling2D", X, 0, output_size="(1, 2, 3)"), "expected 1 or 2 positive numbers"),
    (row("_contrib_AdaptiveAvgPooling2D", X, 0, output_size="10000000"), "is too large"),
]  # fmt: skip


@pytest.mark.parametrize("case", ROWS, ids=names(ROWS))
def test_a_picture_is_convolved_and_resized_as_in_mxnet(case, tmp_path):
    check_row(tmp_path, case)


@pytest.mark.parametrize(("case", "problem"), REFUSALS, ids=names(REFUSALS))
def test_sizes_that_do_not_fit_are_refused(case, problem, tmp_path):
    check_refusal(tmp_path, case, problem)


def test_channels_last_is_channels_first_with_axes_moved(tmp_path):
    first = compute(
        import_row(
            tmp_path, row("Convolution", X, 0, [W], **GROUPED, no_bias="1")
        ),
        [X],
    )
    last = row("Convolution", channels_last(X), channels_last(first), [channels_last(W)], **GROUPED, no_bias="1",
               layout="NHWC")  # fmt: skip
    check_row(tmp_path, last)


def test_a_transposed_convolution_too_may_have_channels_last(tmp_path):
    attributes = {
        "kernel": "(3, 2)",
        "num_filter": "3",
        "stride": "(2, 2)",
        "target_shape": "(10, 7)",
    }
    first = compute(
        import_row(tmp_path, row("Deconvolution", X, 0, [BACK], **attributes)),
        [X],
    )
    check_row(
        tmp_path,
        row(
            "Deconvolution",
            channels_last(X),
            channels_last(first),
            [channels_last(BACK)],
            **attributes,
            layout="NHWC",
        ),
    )


def test_large_bins_are_averaged_axis_by_axis(tmp_path):
    picture = numbers(1, 2, 64, 60)
    expected = np.zeros((1, 2, 40, 40))
    for i, j in np.ndindex(40, 40):
        rows = slice(i * 64 // 40, -(-(i + 1) * 64 // 40))
        columns = slice(j * 60 // 40, -(-(j + 1) * 60 // 40))
        expected[:, :, i, j] = picture[:, :, rows, columns].mean((2, 3))
    check_row(
        tmp_path,
        row(
            "_contrib_AdaptiveAvgPooling2D", picture, expected, output_size="40"
        ),
    )
