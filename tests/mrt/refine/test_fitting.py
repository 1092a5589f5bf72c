import numpy as np
import pytest

from mrt.refine.fitting import (
    LONGEST,
    RIDGES,
    ROWS,
    Fitting,
    best_correction,
    can_be_fitted,
)
from mrt.refine.moments import Rows

ANYTHING = np.array([-np.inf]), np.array([np.inf])


def halves_of(inputs, outputs, weights, low=ANYTHING[0], high=ANYTHING[1]):
    """Both halves of rows [groups, N, K] and float outputs [N, O]."""
    found = []
    for start in (0, 1):
        found.append(Fitting(weights, np.zeros(outputs.shape[1]), (low, high)))
        for block in range(start, 40, 2):
            some = slice(block * 100, block * 100 + 100)
            found[-1].add(
                Rows(inputs[:, some].astype(np.float32), 100.0),
                outputs[some].astype(np.float32),
            )
    return found


def test_a_weight_that_passes_errors_on_becomes_smaller():
    """Of an input with variance 4 + 1, of which 1 is error, 4/5 of the weight is best.

    The ridge goes half of the way.
    """
    rng = np.random.default_rng(0)
    real = rng.normal(size=(1, 4000, 2)) * 2
    inputs = real + rng.normal(size=real.shape)
    weights = np.array([[[1.0, -3.0]]])
    added = best_correction(
        halves_of(inputs, (real[0] @ weights[0].T), weights)
    )
    assert min(RIDGES) == 1.0
    assert np.allclose(added, [[[-0.1, 0.3]]], atol=0.03)


def test_another_input_says_what_one_with_errors_cannot():
    """The second input is the first without its error. With a ridge of 1.5 on variances 2 and 1: (-2.5, 1) / 7.75."""
    rng = np.random.default_rng(1)
    real = rng.normal(size=4000)
    inputs = np.stack([real + rng.normal(size=4000), real], axis=-1)[None]
    added = best_correction(
        halves_of(inputs, real[:, None], np.array([[[1.0, 0.0]]]))
    )
    assert np.allclose(added, [[[-2.5 / 7.75, 1 / 7.75]]], atol=0.03)


def test_weights_stay_where_one_half_contradicts_the_other():
    rng = np.random.default_rng(2)
    inputs = rng.normal(size=(1, 4000, 3))
    turn = np.where(np.arange(4000) // 100 % 2, 1.0, -1.0)
    outputs = (inputs[0, :, 0] * turn)[:, None]
    assert np.array_equal(
        best_correction(halves_of(inputs, outputs, np.zeros((1, 1, 3)))),
        np.zeros((1, 1, 3)),
    )


def test_each_group_is_fitted_to_its_own_outputs():
    rng = np.random.default_rng(3)
    inputs = rng.normal(size=(2, 4000, 1))
    outputs = np.stack([inputs[0, :, 0], 3 * inputs[1, :, 0]], axis=-1)
    added = best_correction(
        halves_of(inputs, outputs, np.array([[[1.0]], [[1.0]]]))
    )
    assert added[0] == pytest.approx(0.0, abs=1e-6)
    assert added[1] == pytest.approx(1.0, abs=0.05)


def test_what_a_clip_takes_away_on_both_sides_does_not_count():
    """Below 0 the float outputs are far off; behind a clip at 0 nobody sees that."""
    rng = np.random.default_rng(4)
    inputs = rng.normal(size=(1, 4000, 1))
    outputs = np.where(inputs[0] > 0, inputs[0], 5 * inputs[0])
    weights = np.ones((1, 1, 1))
    assert best_correction(halves_of(inputs, outputs, weights))[0, 0, 0] > 0.5
    assert best_correction(
        halves_of(inputs, outputs, weights, low=np.zeros(1))
    )[0, 0, 0] == pytest.approx(0.0, abs=1e-6)


def test_a_constant_error_is_no_matter_of_weights():
    """Inputs lie around 10, so that more weight would add about as much; but it goes with nothing."""
    rng = np.random.default_rng(5)
    inputs = rng.normal(size=(1, 4000, 2)) + 10
    outputs = inputs[0].sum(axis=1, keepdims=True) + 3
    assert best_correction(
        halves_of(inputs, outputs, np.ones((1, 1, 2)))
    ) == pytest.approx(0.0, abs=1e-5)


def test_of_a_constant_input_nothing_is_learnt():
    inputs = np.zeros((1, 4000, 2))
    added = best_correction(
        halves_of(inputs, np.ones((4000, 1)), np.ones((1, 1, 2)))
    )
    assert np.array_equal(added, np.zeros((1, 1, 2)))


def test_many_weights_are_fitted_only_where_there_are_many_rows():
    assert can_be_fitted(LONGEST, 10)
    assert not can_be_fitted(LONGEST + 1, ROWS * (LONGEST + 1) - 1)
    assert can_be_fitted(LONGEST + 1, ROWS * (LONGEST + 1))
