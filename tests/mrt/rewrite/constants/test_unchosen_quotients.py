"""divide_where_chosen: zeros that divide where their quotients are dropped, and those that stay."""

import numpy as np
import pytest

from mrt.rewrite.constants.unchosen_quotients import divide_where_chosen
from tests.support.graphs import constant_named, graph_of, node

ZEROS = np.float32([[0, 2, 0, 4]])


def quotient(condition, operands):
    nodes = [node("Div", "x d", "q"), node("Where", f"c {operands}", "y")]
    constants = {"d": ZEROS, "c": np.array([condition]), "z": np.float32(1)}
    return graph_of(nodes, {"x": (1, 4)}, constants)


@pytest.mark.parametrize(
    ("condition", "operands", "divisor"),
    [
        ([False, True, True, True], "q z", [1, 2, 0, 4]),
        ([True, False, True, False], "z q", [1, 2, 1, 4]),
    ],
)
def test_zeros_divide_where_they_are_chosen_alone(condition, operands, divisor):
    model = quotient(condition, operands)
    assert divide_where_chosen(model) == 1
    assert constant_named(model, "q.divisor").tolist() == [divisor]
    assert divide_where_chosen(model) == 0


@pytest.mark.parametrize("condition", [[True] * 4, [True, False, True, True]])
def test_what_is_chosen_stays(condition):
    assert divide_where_chosen(quotient(condition, "q z")) == 0


def test_a_quotient_that_others_read_stays():
    nodes = [
        node("Div", "x d", "q"),
        node("Where", "c q z", "w"),
        node("Add", "w q", "y"),
    ]
    constants = {"d": ZEROS, "c": ZEROS != 0, "z": np.float32(1)}
    model = graph_of(nodes, {"x": (1, 4)}, constants)
    assert divide_where_chosen(model) == 0
