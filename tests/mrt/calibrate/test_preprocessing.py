"""Preprocessing one sample: layouts, colours, normalisation, and sentences for what does not fit."""

import numpy as np
import pytest

from mrt.calibrate.preprocessing import Preprocessing, channel_axis
from mrt.errors import BadData, BadOption


def test_nothing_asked_for_gives_the_array_as_float32() -> None:
    result = Preprocessing().apply(
        np.array([[0, 255]], np.uint8), (1, 1, 1, 2), "x"
    )
    assert result.dtype == np.float32
    assert result.tolist() == [[[[0.0, 255.0]]]]


def test_dimensions_of_one_may_be_missing() -> None:
    assert Preprocessing().apply(
        np.zeros((28, 28)), (1, 1, 28, 28), "x"
    ).shape == (
        1,
        1,
        28,
        28,
    )


def test_nhwc_becomes_nchw() -> None:
    sample = np.array([[[1, 2, 3], [4, 5, 6]]], np.uint8)  # one row, two pixels
    result = Preprocessing(layout="NHWC").apply(sample, (1, 3, 1, 2), "x")
    assert result.tolist() == [[[[1, 4]], [[2, 5]], [[3, 6]]]]


def test_nchw_becomes_nhwc_where_the_model_wants_that() -> None:
    sample = np.zeros((3, 5, 6), np.uint8)
    sample[2, 4, 1] = 7
    result = Preprocessing(layout="NCHW").apply(sample, (1, 5, 6, 3), "x")
    assert np.argwhere(result == 7).tolist() == [[0, 4, 1, 2]]


@pytest.mark.parametrize(
    ("shape", "axis"),
    [
        ((1, 3, 224, 224), 1),
        ((1, 224, 224, 3), 3),
        ((1, 1, 49, 10), 1),
        ((1, 2, 1, 1), 1),
        ((1, 10), 1),
        ((5,), None),
    ],
)
def test_channels_come_first_unless_only_the_last_axis_can_count_them(
    shape: tuple[int, ...], axis: int | None
) -> None:
    assert channel_axis(shape) == axis


def test_bgr_reverses_the_channels() -> None:
    sample = np.array([[[1, 2, 3]]], np.uint8)
    assert Preprocessing(layout="NHWC", color="BGR").apply(
        sample, (1, 3, 1, 1), "x"
    ).ravel().tolist() == [3, 2, 1]


def test_scale_then_mean_then_std() -> None:
    sample = np.array([[[[255.0]], [[0.0]]]])
    step = Preprocessing(scale=1 / 255, mean=(0.5, 0.25), std=(0.5, 0.125))
    assert step.apply(sample, (1, 2, 1, 1), "x").ravel().tolist() == [1.0, -2.0]


def test_means_follow_the_model_not_the_file_after_bgr() -> None:
    sample = np.array([[[1, 2, 3]]], np.uint8)
    step = Preprocessing(layout="NHWC", color="BGR", mean=(3, 2, 1))
    assert step.apply(sample, (1, 3, 1, 1), "x").ravel().tolist() == [0, 0, 0]


def test_a_shape_that_does_not_fit_names_the_layout_that_would() -> None:
    with pytest.raises(BadData) as caught:
        Preprocessing().apply(
            np.zeros((32, 32, 3)), (1, 3, 32, 32), "c.npz: array 'x'"
        )
    assert str(caught.value) == (
        "c.npz: array 'x': a sample of shape [32, 32, 3] (layout 'as is') does not fit the model's input [1, 3, 32, 32]"
        "; give --layout NHWC, or layout = 'NHWC' in the config"
    )


def test_a_shape_that_fits_no_layout_is_refused() -> None:
    with pytest.raises(
        BadData,
        match=r"shape \[9\] .* does not fit the model's input \[1, 10\]$",
    ):
        Preprocessing().apply(np.zeros(9), (1, 10), "x")


def test_a_model_that_takes_several_at_once_says_how_they_are_given() -> None:
    """An exporter that kept the batch of its example, where samples are given one by one."""
    with pytest.raises(BadData) as caught:
        Preprocessing().apply(np.zeros(10), (2, 10), "c.npz: array 'x'")
    assert str(caught.value) == (
        "c.npz: array 'x': a sample of shape [10] (layout 'as is') does not fit the model's input [2, 10], "
        "which takes 2 of them at once: give the array with a shape of [N,2,10], or export the model with an open batch"
    )


def test_equal_sizes_in_another_order_are_not_taken_for_the_same() -> None:
    with pytest.raises(BadData, match="does not fit"):
        Preprocessing().apply(np.zeros((2, 3)), (1, 3, 2), "x")


def test_three_means_for_one_channel_are_refused() -> None:
    with pytest.raises(
        BadData,
        match=r"--mean 1,2,3: expected 1 number for the model's input \[1, 1, 2, 2\]",
    ):
        Preprocessing(mean=(1, 2, 3)).apply(np.zeros((2, 2)), (1, 1, 2, 2), "x")


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (
            {"layout": "CHWN"},
            "layout = 'CHWN': expected one of as is, NCHW, NHWC, HW",
        ),
        ({"color": "CMYK"}, "color = 'CMYK': expected one of RGB, BGR"),
        (
            {"input_dtype": "u16"},
            "input_dtype = 'u16': expected one of real, u8, whole",
        ),
        (
            {"scale": 0.0},
            'scale = 0.0: expected a finite number other than 0, or a fraction such as "1/255"',
        ),
        (
            {"mean": (float("nan"),)},
            'mean = [nan]: expected finite numbers, or fractions such as "1/255"',
        ),
        (
            {"mean": ()},
            'mean = []: expected finite numbers, or fractions such as "1/255"',
        ),
        (
            {"std": (1.0, 0.0)},
            'std = [1.0, 0.0]: expected positive numbers, or fractions such as "1/255"',
        ),
        (
            {"resize": 0},
            "resize = 0: expected a number of pixels from 1 to 65536, or [height, width]",
        ),
        (
            {"crop": 70000},
            "crop = 70000: expected a number of pixels from 1 to 65536, or [height, width]",
        ),
    ],
)
def test_values_out_of_range_are_refused(options, sentence: str) -> None:
    with pytest.raises(BadOption) as caught:
        Preprocessing(**options)
    assert str(caught.value) == sentence


def test_for_bytes_the_layout_of_the_model_is_not_offered_as_one_of_the_file() -> (
    None
):
    """For a program that takes bytes "as is" means the model's own layout, so it is no way out."""
    step = Preprocessing(input_dtype="u8").outside("NCHW")
    with pytest.raises(BadData, match="give --layout NHWC, or layout = 'NHWC'"):
        step.apply(np.zeros((32, 32, 3), np.uint8), (1, 32, 32, 3), "c.npz")


def test_arrays_of_pictures_of_another_size_are_not_resized() -> None:
    with pytest.raises(BadData, match="arrays are not resized: --resize and"):
        Preprocessing(layout="NHWC").apply(
            np.zeros((9, 9, 3)), (1, 3, 8, 8), "x"
        )


def test_the_shape_to_give_for_a_model_that_takes_other_sizes() -> None:
    with pytest.raises(BadData, match=r"--shape NAME=1,3,9,12$"):
        Preprocessing().apply(np.zeros((3, 9, 12)), (10, 3, 8, 8), "x")
