"""lower_reduce_log_sum_exp: before and after on the smallest graphs."""

import numpy as np
import pytest

from mrt.rewrite.reduction.reduce_log_sum_exp import lower_reduce_log_sum_exp
from tests.support.graphs import apply_pass, graph_of, node, operators_of


@pytest.mark.parametrize("keep", [0, 1])
@pytest.mark.parametrize("axes", [[1], [0, 2], [-1]])
def test_it_is_the_greatest_less_the_greatest_log_softmax(axes, keep):
    nodes = [node("ReduceLogSumExp", "x a", "y", keepdims=keep)]
    model = graph_of(nodes, {"x": (2, 3, 4)}, {"a": np.array(axes)})
    assert apply_pass(lower_reduce_log_sum_exp, model) == 1
    assert sorted({*operators_of(model)}) == [
        "LogSoftmax",
        "ReduceMax",
        "Reshape",
        "Sub",
        "Transpose",
    ]


def test_over_nothing_it_is_the_operand():
    model = graph_of(
        [node("ReduceLogSumExp", "x", "y", noop_with_empty_axes=1)],
        {"x": (2, 3)},
    )
    assert lower_reduce_log_sum_exp(model) == 1
    assert operators_of(model) == ["Reshape"]
