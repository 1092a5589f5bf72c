"""lower_trilu_cumsum: before and after on the smallest graphs, by numbers worked out by hand."""

import numpy as np
import onnx
import pytest

from mrt.rewrite.lookup.trilu_cumsum import lower_trilu_cumsum
from tests.support.graphs import (
    apply_pass,
    assert_plain,
    graph_of,
    node,
    operators_of,
    run,
)


def test_a_running_sum_of_floats_is_a_product():
    model = graph_of(
        [node("CumSum", "x a", "y")], {"x": (2, 3)}, {"a": np.array(0)}
    )
    assert apply_pass(lower_trilu_cumsum, model, 1e-5) == 1
    assert operators_of(model) == ["Transpose", "MatMul", "Transpose"]


@pytest.mark.parametrize(
    ("attributes", "sums"),
    [
        ({}, [1, 3, 6, 10, 15]),
        ({"exclusive": 1}, [0, 1, 3, 6, 10]),
        ({"reverse": 1}, [15, 14, 12, 9, 5]),
        ({"reverse": 1, "exclusive": 1}, [14, 12, 9, 5, 0]),
    ],
)
def test_a_running_sum_of_integers_stays_whole(attributes, sums):
    cumulate = node("CumSum", "x a", "y", **attributes)
    model = graph_of(
        [cumulate],
        {"x": (5,)},
        {"a": np.array(-1)},
        kind=onnx.TensorProto.INT64,
    )
    assert lower_trilu_cumsum(model) == 1
    assert run(model, {"x": np.arange(1, 6)})["y"].tolist() == sums


def test_a_running_sum_of_one_integer_is_the_integer():
    model = graph_of(
        [node("CumSum", "x a", "y")],
        {"x": (1,)},
        {"a": np.array(0)},
        kind=onnx.TensorProto.INT64,
    )
    assert lower_trilu_cumsum(model) == 1
    assert operators_of(model) == ["Reshape"]
    assert_plain(model)
    assert run(model, {"x": np.array([7])})["y"].tolist() == [7]


def test_a_triangle_of_a_large_matrix_stays():
    model = graph_of([node("Trilu", "x", "y")], {"x": (2**11 + 1, 2**11)})
    assert lower_trilu_cumsum(model) == 0


@pytest.mark.parametrize(
    ("batch", "time", "shape"), [(1, 0, (5, 3, 2)), (0, 1, (3, 5))]
)
def test_sequences_of_computed_lengths_are_looked_up(batch, time, shape):
    """Of 5 steps, the first 0, 3 and 5 are turned round."""
    reverse = node("ReverseSequence", "x l", "y", batch_axis=batch, time_axis=time)  # fmt: skip
    nodes = [node("Cast", "f", "l", to=7), reverse]
    model = graph_of(nodes, {"x": shape, "f": (3,)})
    x = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    feeds = {"x": x, "f": np.array([0, 3, 5], np.float32)}
    before = run(model, feeds)["y"]
    assert lower_trilu_cumsum(model) == 1
    assert operators_of(model).count("Gather") == 1
    assert np.array_equal(run(model, feeds)["y"], before)
    assert not np.array_equal(before, x)
