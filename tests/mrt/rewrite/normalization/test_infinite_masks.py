"""replace_infinite_masks: before and after on the smallest graphs, and where it must not apply."""

import numpy as np
import pytest

from mrt.rewrite.normalization.infinite_masks import replace_infinite_masks
from tests.support.graphs import apply_pass, constant_named, graph_of, node

SHAPE = {"x": (2, 3)}
MASK = np.array([0, 1, -np.inf], np.float32)


def test_what_is_added_in_front_of_a_softmax_is_finite():
    model = graph_of(
        [node("Add", "x m", "a"), node("Softmax", "a", "y")], SHAPE, {"m": MASK}
    )
    assert apply_pass(replace_infinite_masks, model) == 1
    assert constant_named(model, "a.mask").tolist() == [0, 1, -1e9]
    assert apply_pass(replace_infinite_masks, model) == 0


def test_what_is_chosen_too_and_movement_lies_between():
    nodes = [
        node("Where", "c fill x", "a"),
        node("Transpose", "a", "t", perm=[1, 0]),
        node("Softmax", "t", "y", axis=0),
    ]
    model = graph_of(
        nodes,
        SHAPE,
        {
            "c": np.array([True, False, False]),
            "fill": np.float32(-np.inf)[None],
        },
    )
    assert apply_pass(replace_infinite_masks, model) == 1


@pytest.mark.parametrize(
    "mask",
    [[0.0, 1.0, np.inf], [0.0, 1.0, -1e4]],
    ids=["plus infinity", "no infinity"],
)
def test_other_numbers_stay(mask):
    nodes = [node("Add", "x m", "a"), node("Softmax", "a", "y")]
    assert (
        replace_infinite_masks(
            graph_of(nodes, SHAPE, {"m": np.array(mask, np.float32)})
        )
        == 0
    )


@pytest.mark.parametrize(
    "readers",
    [
        [node("Sigmoid", "a", "y")],
        [node("Softmax", "a", "s"), node("Add", "a s", "y")],
    ],
)
def test_without_a_softmax_alone_behind_it_stays(readers):
    assert (
        replace_infinite_masks(
            graph_of([node("Add", "x m", "a"), *readers], SHAPE, {"m": MASK})
        )
        == 0
    )
