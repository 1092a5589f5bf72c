"""Between which numbers channels lie: intervals worked out by hand."""

import math

import numpy as np
import pytest

from mrt.duplicate.channel_intervals import channel_intervals
from mrt.graph.notes import set_picture_layout
from tests.support.graphs import graph_of, node


def interval_of(nodes, weights, name="y", bytes_input=True, shape=(1, 1, 4, 4)):
    model = graph_of(nodes, {"x": shape}, weights, outputs=nodes[-1].output[0])
    if bytes_input:
        set_picture_layout(model.graph.inputs[0], "NCHW")
    return channel_intervals(model.graph).get(name)


KERNEL = {
    "w": np.float32([[[[1.0, -2.0]]], [[[-1.0, -1.0]]]]),
    "b": [5.0, -7.0],
}


def test_a_convolution_of_bytes_reaches_from_its_negative_to_its_positive_weights():
    low, high = interval_of([node("Conv", "x w b", "y")], KERNEL)
    assert np.allclose(low, [5 - 510, -7 - 510], rtol=1e-4) and np.all(
        low <= [5 - 510, -7 - 510]
    )
    assert np.allclose(high, [5 + 255, -7], rtol=1e-2) and np.all(
        high >= [5 + 255, -7]
    )


def test_a_clip_stops_it_and_what_is_dead_stays_dead():
    low, high = interval_of(
        [node("Conv", "x w b", "a"), node("Relu", "a", "y")], KERNEL
    )
    assert (low.tolist(), high[1]) == ([0, 0], 0)
    nodes = [node("Conv", "x w b", "a"), node("Clip", "a lo hi", "y")]
    low, high = interval_of(nodes, {**KERNEL, "lo": 0.0, "hi": 6.0})
    assert (low.tolist(), high.tolist()) == ([0, 0], [6, 0])


def test_the_convolution_of_a_dead_channel_is_its_bias_exactly():
    nodes = [
        node("Conv", "x w b", "a"),
        node("Clip", "a lo hi", "c"),
        node("Conv", "c v d", "y", group=2, pads=(1,) * 4),
    ]
    weights = {
        **KERNEL,
        "lo": 0.0,
        "hi": 6.0,
        "v": np.ones((2, 1, 3, 3), np.float32),
        "d": [0.1, 0.3],
    }
    low, high = interval_of(nodes, weights)
    assert low[1] == high[1] == np.float32(0.3)
    assert low[0] == pytest.approx(0.1, abs=1e-3) and high[0] == pytest.approx(
        54.1, rel=1e-3
    )


def test_padding_counts_as_0():
    nodes = [
        node("Clip", "x lo hi", "c"),
        node("Conv", "c w b", "y", pads=(0, 0, 0, 1)),
    ]
    low, high = interval_of(
        nodes, {**KERNEL, "lo": 2.0, "hi": 3.0}, bytes_input=False
    )
    assert np.allclose(low, [5 - 6, -7 - 6], atol=1e-3) and np.allclose(
        high, [5 + 3, -7], atol=1e-3
    )


def test_movement_keeps_the_interval_of_all_and_constants_count():
    nodes = [
        node("Concat", "x k", "a", axis=1),
        node("Transpose", "a", "y", perm=(0, 2, 3, 1)),
    ]
    assert [
        end.tolist()
        for end in interval_of(
            nodes, {"k": np.full((1, 1, 4, 4), -3.5, np.float32)}
        )
    ] == [[-3.5], [255]]


def test_of_reals_nothing_is_known_but_behind_a_clip():
    nodes = [node("Conv", "x w b", "a"), node("Relu", "a", "y")]
    assert interval_of(nodes, KERNEL, "a", bytes_input=False) is None
    low, high = interval_of(nodes, KERNEL, bytes_input=False)
    assert (low.tolist(), high.tolist()) == ([0], [math.inf])
    assert interval_of([node("Sigmoid", "x", "y")], {}) is None
