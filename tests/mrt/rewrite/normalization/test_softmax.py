"""lower_softmax: before and after on the smallest graphs, and where it must not apply."""

import pytest

from mrt.rewrite.normalization.softmax import lower_softmax
from tests.support.graphs import apply_pass, graph_of, node, operators_of


def test_another_axis_goes_last_and_back():
    model = graph_of([node("Softmax", "x", "y", axis=1)], {"x": (2, 3, 4, 5)})
    assert apply_pass(lower_softmax, model) == 1
    assert operators_of(model) == ["Transpose", "Softmax", "Transpose"]
    assert list(model.graph[0].attributes["perm"].as_ints()) == [0, 3, 2, 1]


@pytest.mark.parametrize("attributes", [{}, {"axis": -1}])
def test_the_last_axis_is_written_from_the_front(attributes):
    model = graph_of(
        [node("Softmax", "x", "y", **attributes)], {"x": (2, 3, 4)}
    )
    assert apply_pass(lower_softmax, model) == 1
    assert model.graph[0].attributes["axis"].as_int() == 2
    assert apply_pass(lower_softmax, model) == 0


def test_log_softmax_goes_to_the_last_axis_too():
    model = graph_of([node("LogSoftmax", "x", "y", axis=1)], {"x": (2, 3, 4)})
    assert apply_pass(lower_softmax, model) == 1
    assert operators_of(model) == ["Transpose", "LogSoftmax", "Transpose"]
