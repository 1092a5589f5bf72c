"""take_argmax_before_softmax: the scores in the place of their probabilities, and where it must not apply."""

import numpy as np
import pytest

from mrt.rewrite import rewrite
from mrt.rewrite.lookup.argmax_of_softmax import take_argmax_before_softmax
from tests.support.graphs import (
    apply_pass,
    graph_of,
    node,
    operators_of,
    run,
    seeded,
)


def model_of(softmax, softmax_axis, axis):
    return graph_of(
        [node(softmax, "x", "p", axis=softmax_axis), node("ArgMax", "p", "y", axis=axis)],
        {"x": (2, 5, 7)},
    )  # fmt: skip


@pytest.mark.parametrize("softmax", ["Softmax", "LogSoftmax"])
@pytest.mark.parametrize(
    ("softmax_axis", "axis"), [(-1, 2), (2, 2), (1, 1), (1, -2), (-3, 0)]
)
def test_scores_have_their_maximum_where_probabilities_have(
    softmax, softmax_axis, axis
):
    model = model_of(softmax, softmax_axis, axis)
    feeds = seeded({"x": (2, 5, 7)})
    expected = run(model, feeds)["y"]
    rewrite(model)
    assert not {"Softmax", "LogSoftmax"} & set(operators_of(model))
    np.testing.assert_array_equal(run(model, feeds)["y"], expected)


def test_probabilities_along_another_axis_are_compared_themselves():
    model = model_of("Softmax", 1, 2)
    assert apply_pass(take_argmax_before_softmax, model) == 0


def test_probabilities_that_others_read_stay():
    nodes = [
        node("Softmax", "x", "p", axis=-1),
        node("ArgMax", "p", "a", axis=-1),
    ]
    nodes += [node("ReduceSum", "p axes", "b")]
    model = graph_of(
        nodes, {"x": (3, 5)}, {"axes": np.array([1])}, outputs="a b"
    )
    assert apply_pass(take_argmax_before_softmax, model) == 1
    assert sorted(operators_of(model)) == ["ArgMax", "ReduceSum", "Softmax"]
