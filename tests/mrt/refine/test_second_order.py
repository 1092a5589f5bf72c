import gc
import weakref

import numpy as np
import pytest

from mrt.quantize.weights import quantize_weights
from mrt.refine import second_order
from mrt.refine.second_order import (
    BLOCK,
    FACTORS,
    LONGEST,
    round_at_best_scales,
    round_to_second_order,
)


def noise(errors, covariance):
    """The variance of what errors [G,O,K] in the weights do to the outputs, by its definition."""
    return np.einsum("gok,gkl,gol->", errors, covariance, errors)


def correlated(groups, length, seed=0):
    rng = np.random.default_rng(seed)
    factors = rng.normal(size=(groups, length, length // 2 + 1)) @ rng.normal(
        size=(groups, length // 2 + 1, length)
    )
    return factors @ factors.transpose(0, 2, 1) + 0.05 * np.eye(length)


def test_of_two_inputs_that_are_always_equal_the_second_makes_up_for_the_first():
    # 0.4 + 0.4 = 0.8: nearest gives 0 + 0; 0 + 1 is as near as integers come.
    found = round_to_second_order(
        np.array([[0.4, 0.4]]), np.ones(1), np.ones((1, 2, 2)), bits=8
    )
    assert sorted(found[0].tolist()) == [0, 1]


def test_inputs_that_have_nothing_in_common_leave_every_weight_at_the_nearest_integer():
    weights = np.random.default_rng(1).normal(size=(5, 3, 3, 4))
    scales = np.abs(weights).reshape(5, -1).max(axis=1) / 127
    found = round_to_second_order(weights, scales, np.eye(36)[None], bits=8)
    assert np.array_equal(found, quantize_weights(weights, scales, bits=8))


@pytest.mark.parametrize("bits", [3, 4, 8, 12])
@pytest.mark.parametrize(
    ("groups", "outputs", "length"),
    [(1, 7, 40), (3, 2, 9), (1, 3, 2 * BLOCK + 5)],
)
def test_correlated_inputs_leave_less_noise_than_nearest_weights_and_integers_stay_inside_their_bits(
    bits, groups, outputs, length
):
    weights = np.random.default_rng(2).normal(
        size=(groups * outputs, 1, 1, length)
    )
    most = 2 ** (bits - 1) - 1
    scales = np.abs(weights).reshape(len(weights), -1).max(axis=1) / most
    covariance = correlated(groups, length)
    steps = weights.reshape(groups, outputs, length) / scales.reshape(
        groups, outputs, 1
    )
    found = round_to_second_order(weights, scales, covariance.copy(), bits=bits)
    near = quantize_weights(weights, scales, bits=bits)
    assert np.abs(found.astype(int)).max() <= most
    assert found.dtype == (np.int8 if bits <= 8 else np.int16)
    assert noise(found.reshape(steps.shape) - steps, covariance) < 0.7 * noise(
        near.reshape(steps.shape) - steps, covariance
    )


def test_inputs_that_are_always_zero_leave_the_nearest_integers():
    weights = np.array([[0.6, -1.4], [3.0, 2.2]])
    found = round_to_second_order(
        weights, np.ones(2), np.zeros((1, 2, 2)), bits=8
    )
    assert found.tolist() == [[1, -1], [3, 2]]


def test_few_weights_find_a_scale_at_which_they_fit():
    weights = np.array([[127.5, 63.75, 31.875], [127.0, 1.0, -64.0]]) / 1.02
    found, scales = round_at_best_scales(
        weights, np.ones(2), np.eye(3)[None], bits=8
    )
    assert scales[0] in FACTORS and scales[0] > 1  # not clipped, as 125 is at 1
    assert np.abs(found[0] * scales[0] - weights[0]).max() < 0.3
    again, kept = round_at_best_scales(
        np.array([[127.0, 1.0, -64.0]]), np.ones(1), np.eye(3)[None], bits=8
    )
    assert again.tolist() == [[127, 1, -64]] and kept.tolist() == [1]


@pytest.mark.parametrize(("groups", "length"), [(4, 9), (1, 40)])
def test_each_output_has_no_more_noise_than_at_the_scale_given(groups, length):
    weights = np.random.default_rng(3).normal(size=(groups * 3, 1, 1, length))
    scales = np.abs(weights).reshape(len(weights), -1).max(axis=1) / 127
    covariance = correlated(groups, length)

    def noises(found, at):
        errors = (found * at.reshape(-1, 1, 1, 1) - weights).reshape(
            groups, 3, length
        )
        return np.einsum("gok,gkl,gol->go", errors, covariance, errors)

    plain = noises(
        round_to_second_order(weights, scales, covariance.copy(), 8), scales
    )
    best = noises(*round_at_best_scales(weights, scales, covariance.copy(), 8))
    assert np.all(best <= plain) and best.sum() < 0.85 * plain.sum()


def test_many_weights_keep_their_scale():
    weights = np.random.default_rng(4).normal(size=(2, LONGEST + 1))
    scales = np.abs(weights).max(axis=1) / 127
    found, kept = round_at_best_scales(
        weights, scales, np.eye(LONGEST + 1)[None], 8
    )
    assert np.array_equal(kept, scales)
    assert np.array_equal(
        found,
        round_to_second_order(weights, scales, np.eye(LONGEST + 1)[None], 8),
    )


def test_many_weights_of_few_bits_find_a_scale_all_the_same():
    weights = np.random.default_rng(4).normal(size=(2, LONGEST + 1))
    scales = np.abs(weights).max(axis=1) / 7
    exact = np.eye(LONGEST + 1)[None]
    found, kept = round_at_best_scales(weights, scales, exact.copy(), 4)
    plain = round_to_second_order(weights, scales, exact, 4)

    def noise(integers, at):
        return ((integers * at[:, None] - weights) ** 2).sum(axis=1)

    factors = np.round(kept / scales, 9)
    assert set(factors) <= set(FACTORS) - {1.0}
    assert np.all(noise(found, kept) < noise(plain, scales))


def test_what_arithmetic_lost_of_a_covariance_is_added_again():
    """No covariance has a negative eigenvalue; cancellation left one of -2 here."""
    covariance = np.array([[[1.0, 3.0], [3.0, 1.0]]])
    weights = np.array([[0.4, 0.4]])
    found = round_to_second_order(weights, np.ones(1), covariance, 8)
    assert found.tolist() in ([[0, 0]], [[0, 1]], [[1, 0]])


def test_a_variance_below_zero_is_no_obstacle():
    covariance = np.diag([4.0, -1.9, 1.0])[None]
    weights = np.array([[1.2, -2.7, 0.1]])
    found = round_to_second_order(weights, np.ones(1), covariance, 8)
    assert found.tolist() == [[1, -3, 0]]


def test_a_covariance_that_is_no_number_is_refused():
    covariance = np.full((1, 2, 2), np.nan)
    with pytest.raises(np.linalg.LinAlgError):
        round_to_second_order(np.ones((1, 2)), np.ones(1), covariance, 8)


def test_the_matrices_of_a_layer_are_not_kept_behind_its_rounding(monkeypatch):
    """What refers to itself stays until Python looks for it, beside those of the next layer."""
    factors = second_order._factors
    kept = []

    def watched(flipped):
        found = factors(flipped)
        kept.append(weakref.ref(found))
        return found

    monkeypatch.setattr(second_order, "_factors", watched)
    gc.disable()
    try:
        round_to_second_order(np.ones((1, 40)), np.ones(1), np.eye(40)[None], 8)
        round_at_best_scales(np.ones((1, 40)), np.ones(1), np.eye(40)[None], 8)
        assert [found() for found in kept] == [None, None]
    finally:
        gc.enable()
