"""Weights and biases as integers, in literals worked out by hand."""

import numpy as np
import pytest

from mrt.quantize.weights import (
    _best_clip,
    mean_error,
    quantize_bias,
    quantize_weights,
    weight_scales,
)
from mrt.quantize.window import tap_counts

NO_BIAS = np.zeros(2)


def test_each_output_channel_has_its_own_scale():
    weights = np.array([[127.0, -64.0], [0.5, 0.25]])
    scales = weight_scales(weights, NO_BIAS, 1.0, bits=8, scales="real")
    assert scales.tolist() == [1.0, 0.5 / 127]
    assert quantize_weights(weights, scales, bits=8).tolist() == [
        [127, -64],
        [127, 64],
    ]  # 63.5 rounds up


def test_or_all_have_the_coarsest_one():
    weights = np.array([[127.0, -64.0], [0.5, 0.25]])
    for bias, expected in ((NO_BIAS, 1.0), (np.array([0.0, 2.0**31]), 2.0)):
        scales = weight_scales(
            weights, bias, 1.0, bits=8, scales="real", per_channel=False
        )
        assert scales.tolist() == [expected, expected]


def test_power_of_two_scales_are_not_below_the_ideal():
    scales = weight_scales(
        np.array([[127.0], [128.0]]), NO_BIAS, 1.0, bits=8, scales="shift"
    )
    assert scales.tolist() == [1.0, 2.0]


def test_a_bias_too_large_for_i32_makes_the_scale_coarser():
    scales = weight_scales(
        np.array([[2.0**-20]]), np.array([2.0**10]), 0.5, bits=8, scales="real"
    )
    assert scales.tolist() == [2.0**-19]  # 2^10 / (0.5 * 2^30)
    assert quantize_bias(np.array([2.0**10]), scales * 0.5).tolist() == [2**30]


def test_a_bias_beside_which_all_weights_are_0_needs_fewer_bits():
    weights = np.array([[2.0**-20, -(2.0**-21)]])
    scales = weight_scales(
        weights, np.array([1.001 * 2**10]), 0.5, bits=8, scales="real"
    )
    assert scales.tolist() == [1.001 * 2.0**-9]  # 2^10 / (0.5 * 2^20)


def test_a_channel_of_zeros_has_a_scale_all_the_same():
    assert weight_scales(
        np.zeros((2, 3)), NO_BIAS, 1.0, bits=8, scales="real"
    ).tolist() == [1.0, 1.0]


def test_coarse_weights_may_clip_an_outlier():
    weights = np.array([[10.0] + [1.0] * 200 + [-1.0] * 200])
    scale = weight_scales(weights, np.zeros(1), 1.0, bits=3, scales="real")[0]
    assert scale < 10 / 3  # at 10/3 all the ones would become 0


def test_the_mean_error_of_rounding():
    weights = np.array(
        [[1.4, 1.4], [2.0, 1.0]]
    )  # [O, C]; rounds to [[1, 1], [2, 1]]
    errors = mean_error(
        np.array([[1, 1], [2, 1]]), weights, np.ones(2), [10.0, 100.0]
    )
    assert np.allclose(errors, [-0.4 * 110, 0.0], rtol=0, atol=1e-12)


def test_the_mean_error_of_a_depthwise_convolution_uses_each_channels_own_mean():
    weights = np.array([1.25, 1.5]).reshape(2, 1, 1, 1)  # [O, KH, KW, C/groups]
    errors = mean_error(
        np.ones((2, 1, 1, 1), np.int8), weights, np.ones(2), [8.0, 2.0]
    )
    assert errors.tolist() == [-2.0, -1.0]


def test_the_mean_error_counts_a_tap_by_the_share_of_outputs_at_which_it_meets_an_input():
    weights = np.array([1.25, 1.5]).reshape(
        1, 2, 1, 1
    )  # [O, KH, KW, C]; rounds to 1, 1
    shares = np.array([0.5, 1.0]).reshape(2, 1, 1)
    errors = mean_error(
        np.ones((1, 2, 1, 1), np.int8), weights, np.ones(1), [8.0], shares
    )
    assert errors.tolist() == [-0.25 * 8 * 0.5 - 0.5 * 8]


def test_how_many_windows_have_a_tap_inside():
    # 3 taps on 4 places, 1 padded on each side: windows start at -1, 0, 1, 2
    assert tap_counts(
        taps=3, dilation=1, windows=4, stride=1, before=1, size=4
    ).tolist() == [3, 4, 3]
    # stride 2, dilation 2: windows start at -1 and 1, taps lie at -1, 1, 3 and 1, 3, 5
    assert tap_counts(
        taps=3, dilation=2, windows=2, stride=2, before=1, size=4
    ).tolist() == [1, 2, 1]


@pytest.mark.parametrize(("bits", "dtype"), [(8, "int8"), (9, "int16")])
def test_weights_are_bytes_up_to_8_bits(bits, dtype):
    found = quantize_weights(np.ones((2, 3)), np.ones(2), bits=bits)
    assert found.dtype == dtype


def test_of_equal_errors_the_widest_scale_is_kept():
    assert _best_clip(np.zeros((2, 3)), np.ones(2), 7).tolist() == [1, 1]
