"""note_inputs: what is written on inputs that hold indices, and on which inputs nothing may be."""

from itertools import pairwise

import numpy as np
import onnx
import pytest

from mrt.graph.notes import write_to_metadata
from mrt.rewrite.note_inputs import note_inputs
from tests.support.graphs import graph_of, node

TABLE = {"t": np.zeros((7, 2), np.float32)}
LIMITS = {"low": np.float32(0), "high": np.float32(6)}
NUMBERS = {"n": np.arange(-2, 5)}
CUT = node("Cast", "x", "c", to=7)


def noted(nodes, weights, kind=onnx.TensorProto.FLOAT):
    model = graph_of(nodes, {"x": (3, 1)}, weights, kind=kind)
    note_inputs(model)
    write_to_metadata(model)
    return dict(model.graph.inputs[0].metadata_props)


@pytest.mark.parametrize(
    ("nodes", "weights", "expected"),
    [
        ([CUT, node("Gather", "t c", "y")], TABLE, {"mrt.indices": "-7 6"}),
        ([node("Clip", "x low high", "a"), node("Cast", "a", "c", to=6), node("Gather", "t c", "y", axis=0)],
         TABLE | LIMITS, {"mrt.indices": "0 6"}),
        ([CUT, node("Equal", "c n", "e"), node("Cast", "e", "y", to=1)], NUMBERS, {"mrt.compared": "-2 4"}),
        ([CUT, node("Add", "c n", "d"), node("Gather", "t d", "y")], TABLE | NUMBERS, {"mrt.compared": "0 0"}),
    ],
)  # fmt: skip
def test_floats_that_are_only_indices(nodes, weights, expected):
    assert noted(nodes, weights) == expected


@pytest.mark.parametrize(
    ("nodes", "weights"),
    [
        ([node("Floor", "x", "y")], {}),
        ([node("Floor", "x", "f"), node("Cast", "f", "c", to=7), node("Gather", "t c", "y")], TABLE),
        ([CUT, node("Cast", "c", "y", to=1)], {}),
        ([CUT, node("Gather", "t c", "g"), node("Relu", "x", "y")], TABLE),
        ([node("Equal", "x low", "e"), node("Cast", "e", "y", to=1)], LIMITS),
        ([node("Cast", "x", "b", to=9), node("Cast", "b", "y", to=1)], {}),
    ],
)  # fmt: skip
def test_floats_that_are_more_than_indices_stay_floats(nodes, weights):
    assert noted(nodes, weights) == {}


SLICES = {
    **TABLE,
    "s": np.zeros((4, 2), np.float32),
    **{name: np.array([place]) for name, place in (("zero", 0), ("one", 1), ("two", 2))},
}  # fmt: skip


@pytest.mark.parametrize(
    ("second", "expected"),
    [("x one two zero", "-4 6"), ("x zero one zero", "-4 6"), (None, "-4 3")],
)
def test_slices_have_their_own_axes(second, expected):
    """Characters and syllables in one input, each with a table of its own."""
    nodes = [
        node("Slice", "x zero one zero", "first"),
        node("Slice", second or "x one two zero", "second"),
        node("Gather", "t first", "a"),
        node("Gather", "s second", "b"),
        node("Add", "a b", "y"),
    ]
    if second is None:  # the whole input is looked up in the shorter axis, too
        nodes += [node("Gather", "s x", "all"), node("Relu", "all", "z")]
    found = noted(nodes, SLICES, onnx.TensorProto.INT64)
    assert found == {"mrt.indices": expected}


def test_integers_look_up_the_shorter_of_two_axes():
    nodes = [
        node("Gather", "t x", "a"),
        node("Gather", "s x", "b"),
        node("Add", "a b", "y"),
    ]
    weights = TABLE | {"s": np.zeros((4, 2), np.float32)}
    assert noted(nodes, weights, onnx.TensorProto.INT64) == {
        "mrt.indices": "-4 3"
    }


WRAPS = {
    "zero": np.array([0]),
    "below": np.array([-1]),
    "n": np.array([7]),
}


@pytest.mark.parametrize(
    "nodes",
    [
        [node("Less", "x zero", "c"), node("Add", "x n", "j"), node("Where", "c j x", "k")],
        [node("LessOrEqual", "x below", "c"), node("Add", "n x", "j"), node("Where", "c j x", "k")],
        [node("GreaterOrEqual", "x zero", "c"), node("Add", "x n", "j"), node("Where", "c x j", "k")],
        [node("Greater", "x below", "c"), node("Add", "x n", "j"), node("Where", "c x j", "k")],
    ],
)  # fmt: skip
def test_a_wrap_of_negative_indices_is_seen_through(nodes):
    """As numpy, JAX and TensorFlow write it: an id that no sample has is not another id."""
    looked_up = [*nodes, node("Gather", "t k", "y")]
    found = noted(looked_up, TABLE | WRAPS, onnx.TensorProto.INT64)
    assert found == {"mrt.indices": "-7 6"}


@pytest.mark.parametrize(
    ("between", "expected"),
    [
        ([node("Clip", "k low high", "m"), node("Gather", "t m", "y")], "-5 6"),
        ([node("Reshape", "k shape", "m"), node("Gather", "t m", "y")], "-5 6"),
    ],
)
def test_a_wrap_says_from_where_negative_indices_count(between, expected):
    wrap = [node("Less", "x zero", "c"), node("Add", "x five", "j"), node("Where", "c j x", "k")]  # fmt: skip
    weights = TABLE | WRAPS | {"five": np.array([5]), "shape": np.array([1, 3])}
    weights |= {"low": np.int64(0), "high": np.int64(6)}
    found = noted([*wrap, *between], weights, onnx.TensorProto.INT64)
    assert found == {"mrt.indices": expected}


CLIPS = {
    name: np.int64(number)
    for name, number in {"l1": -1, "l3": -3, "l7": -7, "l0": 0, "h3": 3, "h6": 6}.items()
}  # fmt: skip
T = node("Gather", "t m", "y")


@pytest.mark.parametrize(
    ("nodes", "expected"),
    [
        ([node("Clip", "x l7 h6", "m"), T], "-7 6"),
        ([node("Clip", "x l1 h6", "m"), T], "-1 6"),
        ([node("Clip", "x h3 h6", "m"), T], "0 6"),
        ([node("Clip", "x - h6", "m"), T], "-7 6"),
        ([node("Clip", "x l0", "m"), T], "0 6"),
        ([node("Clip", "x l1 h6", "m"), node("Clip", "m l0 h6", "k"), node("Gather", "t k", "y")], "0 6"),
        ([node("Clip", "x l7 h6", "m"), node("Clip", "m l3 h6", "k"), node("Gather", "t k", "y")], "-3 6"),
    ],
)  # fmt: skip
def test_negative_indices_that_a_clip_leaves_count_from_the_end(
    nodes, expected
):
    found = noted(nodes, TABLE | CLIPS, onnx.TensorProto.INT64)
    assert found == {"mrt.indices": expected}


def test_a_clip_behind_a_wrap_cuts_other_numbers():
    """-1 is wrapped to 6, which the second Clip lets pass."""
    nodes = [
        node("Clip", "x l1 h6", "m"),
        node("Less", "m zero", "c"),
        node("Add", "m n", "j"),
        node("Where", "c j m", "k"),
        node("Clip", "k l0 h6", "i"),
        node("Gather", "t i", "y"),
    ]
    weights = TABLE | WRAPS | CLIPS
    found = noted(nodes, weights, onnx.TensorProto.INT64)
    assert found == {"mrt.indices": "-1 6"}


def test_numbers_that_a_clip_cuts_for_a_lookup_are_whole_for_others():
    nodes = [
        node("Clip", "x l0 h6", "m"),
        node("Gather", "t m", "d"),
        node("Cast", "x", "f", to=1),
        node("Unsqueeze", "f last", "e"),
        node("Add", "d e", "y"),
    ]
    weights = TABLE | CLIPS | {"last": np.array([-1])}
    assert noted(nodes, weights, onnx.TensorProto.INT64) == {}
    unclipped = [node("Gather", "t x", "d"), *nodes[2:]]
    found = noted(unclipped, weights, onnx.TensorProto.INT64)
    assert found == {"mrt.indices": "-7 6"}


@pytest.mark.parametrize(
    ("clips", "expected"),
    [
        (("x l1 h6", "x l3 h3"), "-3 6"),
        (("x l0 h6", "x l0 h3"), "0 6"),
        (("x l1 h6", "x"), "-4 3"),
        (("x", "x l1 h3"), "-7 6"),
        (("x - h6", "x l1 h3"), "-7 6"),
    ],
)
def test_indices_of_two_axes_reach_as_far_as_clips_let_them(clips, expected):
    """Beyond a Clip every number has a row; without one only those of the axis."""
    names = ["x" if read == "x" else f"m{at}" for at, read in enumerate(clips)]
    clipped = [
        node("Clip", read, name)
        for read, name in zip(clips, names, strict=True)
        if read != "x"
    ]
    long, short = names
    nodes = [
        *clipped,
        node("Gather", f"t {long}", "d"),
        node("Gather", f"s {short}", "e"),
        node("Add", "d e", "y"),
    ]
    found = noted(nodes, SLICES | CLIPS, onnx.TensorProto.INT64)
    assert found == {"mrt.indices": expected}


def test_numbers_that_are_no_wrap_are_compared():
    """Where the lower numbers get something else, the model computes with the input."""
    nodes = [
        node("Less", "x n", "c"),
        node("Add", "x n", "j"),
        node("Where", "c j x", "k"),
        node("Gather", "t k", "y"),
    ]
    found = noted(nodes, TABLE | WRAPS, onnx.TensorProto.INT64)
    assert found == {"mrt.compared": "7 7"}


def test_integers_that_are_only_numbers():
    nodes = [node("Cast", "x", "f", to=1), node("Relu", "f", "y")]
    assert noted(nodes, {}, onnx.TensorProto.INT32) == {}


def test_a_chain_deeper_than_python_recurses():
    names = ["x", *(f"v{index}" for index in range(2000)), "y"]
    nodes = [node("Clip", f"{old} low", new) for old, new in pairwise(names)]
    model = graph_of(nodes, {"x": (1, 4)}, {"low": np.float32(0)})
    assert note_inputs(model) == 0
