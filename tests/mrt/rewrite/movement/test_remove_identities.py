"""remove_identities: before and after on the smallest graphs, and where it must not apply."""

import numpy as np
import pytest

from mrt.rewrite.movement.remove_identities import remove_identities
from tests.support.graphs import apply_pass, graph_of, node, operators_of

_NOTHING = [
    (node("Identity", "a", "b"), {}),
    (node("Dropout", "a", "b"), {}),
    (node("Dropout", "a r t", "b"), {"r": 0.5, "t": np.array(False)}),
    (node("Cast", "a", "b", to=1), {}),
    (node("Transpose", "a", "b", perm=[0, 1, 2]), {}),
    (node("Reshape", "a s", "b"), {"s": np.array([0, 0, -1])}),
    (node("Expand", "a s", "b"), {"s": np.array([1, 1])}),
    (node("Tile", "a s", "b"), {"s": np.array([1, 1, 1])}),
    (
        node("Slice", "a s e", "b"),
        {"s": np.array([0, 0]), "e": np.array([9, 9])},
    ),
    (node("Pad", "a p", "b"), {"p": np.zeros(6, np.int64)}),
    (node("Concat", "a", "b", axis=0), {}),
    (node("Sum", "a", "b"), {}),
    (node("Mul", "a k", "b"), {"k": 1.0}),
    (node("Add", "a k", "b"), {"k": 0.0}),
]
_SOMETHING = [
    (node("Dropout", "a r t", "b"), {"r": 0.0, "t": np.array(True)}),
    (node("Transpose", "a", "b"), {}),
    (node("Transpose", "a", "b", perm=[1, 0, 2]), {}),
    (node("Reshape", "a s", "b"), {"s": np.array([3, 2, 4])}),
    (
        node("Slice", "a s e z t", "b"),
        {
            "s": np.array([-1]),
            "e": np.array([-9]),
            "z": np.array([1]),
            "t": np.array([-1]),
        },
    ),
    (node("Pad", "a p", "b"), {"p": np.array([1, -1, 0, -1, 1, 0])}),
    (node("Mul", "a k", "b"), {"k": 1.0000001}),
    (node("Mul", "a k", "b"), {"k": np.ones((5, 1, 1, 1), np.float32)}),
    (node("Add", "a k", "b"), {"k": [0.0, 0.0, 0.0, 1.0]}),
]


def around(middle, weights):
    return graph_of(
        [node("Neg", "x", "a"), middle, node("Neg", "b", "y")],
        {"x": (2, 3, 4)},
        weights,
    )


@pytest.mark.parametrize(
    ("middle", "weights"),
    _NOTHING,
    ids=lambda item: getattr(item, "op_type", ""),
)
def test_what_changes_nothing_goes(middle, weights):
    model = around(middle, weights)
    assert apply_pass(remove_identities, model) == 1
    assert operators_of(model) == ["Neg", "Neg"]


@pytest.mark.parametrize(
    ("middle", "weights"),
    _SOMETHING,
    ids=lambda item: getattr(item, "op_type", ""),
)
def test_what_changes_something_stays(middle, weights):
    assert apply_pass(remove_identities, around(middle, weights)) == 0


def test_the_maker_of_an_output_takes_the_outputs_name():
    model = graph_of(
        [node("Neg", "x", "a"), node("Identity", "a", "y")], {"x": (2, 3)}
    )
    assert apply_pass(remove_identities, model) == 1
    assert [value.name for value in model.graph.outputs] == ["y"]
    assert operators_of(model) == ["Neg"]


def test_between_input_and_output_it_becomes_a_reshape():
    model = graph_of([node("Identity", "x", "y")], {"x": (2, 3)})
    assert apply_pass(remove_identities, model) == 1
    assert operators_of(model) == ["Reshape"]


def test_two_outputs_of_one_value_keep_both_names():
    nodes = [node("Neg", "x", "y"), node("Identity", "y", "z")]
    model = graph_of(nodes, {"x": (2, 3)}, outputs="y z")
    apply_pass(remove_identities, model)
    assert [value.name for value in model.graph.outputs] == ["y", "z"]
    assert operators_of(model) == ["Neg", "Reshape"]


def test_a_dropout_whose_mask_is_read_stays():
    nodes = [
        node("Dropout", "x", "a m"),
        node("Cast", "m", "f", to=1),
        node("Mul", "a f", "y"),
    ]
    assert apply_pass(remove_identities, graph_of(nodes, {"x": (2, 3)})) == 0
