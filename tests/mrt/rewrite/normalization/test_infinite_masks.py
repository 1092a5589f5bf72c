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


CHOSEN = {"c": np.array([True, False, False]), "fill": np.float32([-np.inf])}
WAYS = {
    "two softmaxes": (
        [
            node("Where", "c fill x", "a"),
            node("Add", "x a", "one"),
            node("Softmax", "one", "s"),
            node("Add", "s a", "other"),
            node("Softmax", "other", "y"),
        ],
        CHOSEN,
    ),
    "copies": (
        [
            node("Where", "c fill x", "a"),
            node("Concat", "a a", "t", axis=0),
            node("Softmax", "t", "y"),
        ],
        CHOSEN,
    ),
    "a table of biases": (
        [
            node("Gather", "m i", "a"),
            node("Add", "x a", "t"),
            node("Softmax", "t", "y"),
        ],
        {"m": MASK, "i": np.array([2, 0, 1])},
    ),
    "what is padded": (
        [node("Pad", "x n fill", "a"), node("Softmax", "a", "y")],
        {"n": np.array([0, 1, 0, 0]), "fill": np.float32(-np.inf)},
    ),
    "in the place of nothing": (
        [
            node("ScatterElements", "m i x", "a", axis=1),
            node("Softmax", "a", "y"),
        ],
        {
            "m": np.full((2, 4), -np.inf, np.float32),
            "i": np.array([[0, 1, 3]] * 2),
        },
    ),
    "beside the logits": (
        [node("Concat", "x m", "a", axis=1), node("Softmax", "a", "y")],
        {"m": np.full((2, 1), -np.inf, np.float32)},
    ),
    "a row less its maximum": (
        [
            node("Where", "c fill x", "a"),
            node("ReduceMax", "a axis", "top"),
            node("Sub", "a top", "t"),
            node("Softmax", "t", "y"),
        ],
        {**CHOSEN, "axis": np.array([1])},
    ),
    "the maximum, which others read too": (
        [
            node("Where", "c fill x", "a"),
            node("ReduceMax", "a axis", "top"),
            node("Sub", "a top", "t"),
            node("Exp", "t", "e"),
            node("Mul", "e top", "y"),
        ],
        {**CHOSEN, "axis": np.array([1])},
    ),
    "the greatest": (
        [node("Where", "c fill x", "a"), node("ArgMax", "a", "y", axis=1)],
        CHOSEN,
    ),
}


@pytest.mark.parametrize("name", WAYS)
def test_every_way_to_mask(name):
    nodes, constants = WAYS[name]
    model = graph_of(nodes, SHAPE, constants)
    assert apply_pass(replace_infinite_masks, model) == 1
    assert np.isfinite(constant_named(model, "a.mask")).all()


@pytest.mark.parametrize(
    "second",
    [
        [node("Where", "c fill a", "b")],
        [node("Add", "a n", "b")],
        [node("Where", "c fill zero", "w"), node("Add", "a w", "b")],
    ],
    ids=["chosen", "added", "chosen and added"],
)
def test_one_mask_behind_another(second):
    nodes = [node("Add", "x m", "a"), *second, node("Softmax", "b", "y")]
    weights = {
        **CHOSEN,
        "m": MASK,
        "n": MASK[None],
        "zero": np.zeros(3, np.float32),
    }
    model = graph_of(nodes, SHAPE, weights)
    assert apply_pass(replace_infinite_masks, model) == 2


@pytest.mark.parametrize(
    "readers",
    [
        [
            node("ReduceMax", "a axis", "top"),
            node("Sub", "top a", "t"),
            node("Softmax", "t", "y"),
        ],
        [
            node("ReduceMax", "a axis", "top", keepdims=0),
            node("Equal", "top fill", "b"),
            node("Cast", "b", "y", to=1),
        ],
    ],
    ids=["the maximum less a row", "the maximum that is asked"],
)
def test_a_maximum_read_otherwise_keeps_infinity(readers):
    nodes = [node("Where", "c fill x", "a"), *readers]
    weights = {**CHOSEN, "axis": np.array([1])}
    assert replace_infinite_masks(graph_of(nodes, SHAPE, weights)) == 0


@pytest.mark.parametrize(
    ("operator", "signs"),
    [("Exp", [-1]), ("Sigmoid", [-1, 1]), ("Tanh", [-1, 1])],
)
@pytest.mark.parametrize("mask", [[-1], [1], [-1, 1]], ids=str)
def test_in_front_of_a_function_either_infinity_is_replaced(
    operator, signs, mask
):
    """Exp makes infinity of infinity, of which there is none in a program."""
    infinities = np.float32([[sign * np.inf] for sign in mask])
    model = graph_of(
        [node("Where", "c fill x", "a"), node(operator, "a", "y")],
        {"x": (len(mask), 3)},
        {"c": np.array([True, False, False]), "fill": infinities},
    )
    is_replaced = set(mask) <= set(signs)
    if not is_replaced:
        assert replace_infinite_masks(model) == 0
    else:
        assert apply_pass(replace_infinite_masks, model) == 1
        finite = constant_named(model, "a.mask")[:, 0].tolist()
        assert finite == [sign * 1e9 for sign in mask]


@pytest.mark.parametrize(
    "readers",
    [
        [node("Softplus", "a", "y")],
        [node("Sigmoid", "a", "s"), node("Add", "a s", "y")],
        [node("Softmax", "a", "s"), node("Add", "a s", "y")],
        [node("Concat", "a a", "t", axis=0), node("Relu", "t", "y")],
        [node("LogSoftmax", "a", "y")],
        [node("LogSoftmax", "a", "t"), node("Neg", "t", "y")],
        [
            node("LogSoftmax", "a", "t"),
            node("Exp", "t", "e"),
            node("Mul", "e t", "y"),
        ],
    ],
)
def test_without_readers_alone_that_take_numbers_for_it_it_stays(readers):
    assert (
        replace_infinite_masks(
            graph_of([node("Add", "x m", "a"), *readers], SHAPE, {"m": MASK})
        )
        == 0
    )
