"""Gains and biases: what a least-squares fit by numpy gives, drawn towards doing nothing."""

import math

import numpy as np
import onnx_ir as ir
import pytest

from mrt.refine.matching import MOST_GAIN, Matching, interval_behind
from tests.support.float_models import FloatModel

EVERYTHING = -math.inf, math.inf


def matched(computed, wanted, interval=EVERYTHING, gains=True, at_once=7):
    matching = Matching(interval)
    for start in range(0, len(computed), at_once):
        matching.add(
            computed[start : start + at_once], wanted[start : start + at_once]
        )
    return matching.result(gains=gains)


def outputs(samples=60, channels=2, mean=3.0):
    return np.random.default_rng(2).normal(mean, 1, (samples, 20, channels))


def test_with_equal_variances_half_of_the_slope_is_taken():
    """As much speaks for 1 as the mean channel says: (1.2 + 1) / 2."""
    computed = outputs(channels=1)
    gains, added = matched(computed, 1.2 * computed - 5)
    assert np.allclose(gains, 1.1)
    assert np.allclose(added, 0.1 * computed.mean() - 5, atol=1e-3)


def test_a_channel_of_little_variance_keeps_nearly_its_scale():
    computed = outputs() * [10, 0.1]
    gains, _ = matched(computed, 1.2 * computed)
    assert gains[0] > 1.13 and abs(gains[1] - 1) < 1e-3


def test_gains_have_a_limit():
    computed = outputs(channels=1)
    assert matched(computed, 9 * computed)[0].tolist() == [MOST_GAIN]
    assert matched(computed, 0 * computed)[0].tolist() == [1 / MOST_GAIN]


@pytest.mark.parametrize("size", [1e19, 1e25])
def test_outputs_too_large_to_be_squared_keep_their_scale(size):
    """Of float32, which holds numbers up to 3.4e38: a network without its trained weights can grow so far."""
    computed = outputs() * size
    gains, added = matched(computed, 1.2 * computed)
    assert gains.tolist() == [1.0, 1.0]
    assert np.allclose(added, 0.2 * computed.mean((0, 1)), rtol=0.01)


def test_without_gains_only_the_mean_is_set():
    computed = outputs()
    gains, added = matched(
        computed, computed + np.array([1.0, -2.0]), gains=False
    )
    assert gains.tolist() == [1, 1]
    assert np.allclose(added, [1, -2])


def test_what_is_cut_off_on_both_sides_does_not_count():
    """Between 0 and 6 float is 1 more; beyond 6 it is 100 more, below 0 it is 100 less."""
    computed = np.linspace(-4.5, 9.5, 15)[None, :, None] * np.ones((5, 1, 1))
    beyond = np.where(computed < 0, -100.0, 100.0)
    wanted = computed + np.where((computed > 0) & (computed < 6), 1.0, beyond)
    assert np.allclose(matched(computed, wanted, (0.0, 6.0), gains=False)[1], 1)
    assert abs(matched(computed, wanted, EVERYTHING, gains=False)[1][0] - 1) > 5


def test_an_output_counts_if_one_side_alone_lies_within():
    computed = (
        np.array([-9.0, -1.0, 1.0, 1.0]).reshape(1, 4, 1).repeat(4, axis=0)
    )
    wanted = np.array([-6.0, 2.0, 3.0, 3.0]).reshape(1, 4, 1).repeat(4, axis=0)
    assert np.allclose(
        matched(computed, wanted, (0.0, math.inf), gains=False)[1], 7 / 3
    )


def test_a_channel_is_not_moved_into_what_the_clip_lets_pass():
    """One place in ten is 2 too low.

    Raised by 2 for its sake, the other nine would come out at 1 in place of 0: 9 for 4.
    """
    places = np.array([1.0] + [-1.0] * 9).reshape(1, 10, 1).repeat(4, axis=0)
    wanted = np.where(places > 0, 3.0, -1.0)
    gains, added = matched(places, wanted, (0.0, math.inf))
    assert (gains.tolist(), added.tolist()) == ([1], [0])
    nothing_there = np.where(places > 0, 1.0, -9.0)
    gains, added = matched(nothing_there, wanted, (0.0, math.inf), gains=False)
    assert (gains.tolist(), added.tolist()) == ([1], [2])


def test_a_mean_that_may_be_chance_is_not_taken():
    signs = np.where(np.arange(40) % 2, 1.0, -1.0)[:, None, None]
    wanted = signs + 0.01
    _, added = matched(np.zeros((40, 1, 1)), wanted, gains=False)
    assert added.tolist() == [0]
    assert matched(np.zeros((1, 1, 1)), np.ones((1, 1, 1)), gains=False)[
        1
    ].tolist() == [0]


def test_the_interval_is_that_of_the_only_reader():
    model = FloatModel(x=(1, 2, 4, 4))
    for name, operator in (
        ("a", "Relu"),
        ("b", "Clip"),
        ("c", "Sigmoid"),
        ("d", "Relu"),
    ):
        model.conv("x", np.ones((2, 2, 1, 1)), np.zeros(2), name=name)
        ends = [np.float32(0.5), np.float32(6)] if operator == "Clip" else []
        model.add(operator, name, *ends)
    model.add("Add", "d", "c", name="out")
    values = {
        value.name: value
        for node in ir.from_proto(model.proto("out")).graph
        for value in node.outputs
    }
    assert interval_behind(values["a"]) == (0.0, math.inf)
    assert interval_behind(values["b"]) == (0.5, 6.0)
    assert (
        interval_behind(values["c"])
        == interval_behind(values["d"])
        == EVERYTHING
    )
