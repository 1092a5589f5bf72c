"""Quotients of integers that are rounded down, and remainders: as files write them, and what only looks like one."""

import numpy as np
import pytest
from onnx import TensorProto

from mrt.rewrite import rewrite
from mrt.rewrite.elementwise.floor_division import canonicalize_floor_division
from mrt.rewrite.elementwise.remainders import take_remainders
from tests.support.graphs import node, operators_of, run
from tests.support.integers import X, model_with, same_numbers

LEAVES_SOME = [node("Mod", "x n", "r"), node("Cast", "r", "some", to=9)]
CORRECTED = [
    node("And", "below some", "lowered"),
    node("Cast", "lowered", "c", to=7),
    node("Div", "x n", "d"),
    node("Sub", "d c", "y"),
]
IS_BELOW = node("Less", "x zero", "below")
SIGN_IS_NOT_ONE = [
    node("Sign", "x", "sign"),
    node("Equal", "sign one", "e"),
    node("Not", "e", "below"),
]
CHOSEN = [
    IS_BELOW,
    node("Mod", "x n", "r"),
    node("Equal", "r zero", "none"),
    node("Not", "none", "some"),
    node("And", "some below", "lowered"),
    node("Div", "x n", "d"),
    node("Add", "d minus_one", "less"),
    node("Where", "lowered less d", "y"),
]
FLOORED = [
    node("Mod", "x n", "r"),
    node("Sub", "x r", "multiple"),
    node("Div", "multiple n", "d"),
]


@pytest.mark.parametrize(
    "nodes",
    [
        [IS_BELOW, *LEAVES_SOME, *CORRECTED],
        [*SIGN_IS_NOT_ONE, *LEAVES_SOME, *CORRECTED],
        CHOSEN,
    ],
)
def test_a_corrected_quotient_is_one_that_is_rounded_down(nodes):
    assert same_numbers(nodes, canonicalize_floor_division) == 1
    model = model_with(nodes)
    rewrite(model)
    assert sorted(operators_of(model)) == ["Div", "Mod", "Sub"]


@pytest.mark.parametrize(
    "nodes",
    [
        [IS_BELOW, node("Mod", "x k", "r"), LEAVES_SOME[1], *CORRECTED],
        [node("Less", "x one", "below"), *LEAVES_SOME, *CORRECTED],
        [IS_BELOW, *LEAVES_SOME, node("Or", "below some", "lowered"), *CORRECTED[1:]],
        [*CHOSEN[:-2], node("Add", "d one", "less"), CHOSEN[-1]],
        [*CHOSEN[:-1], node("Where", "lowered d less", "y")],
    ],
)  # fmt: skip
def test_what_is_corrected_otherwise_stays(nodes):
    assert same_numbers(nodes, canonicalize_floor_division) == 0


@pytest.mark.parametrize("kind", [TensorProto.INT32, TensorProto.INT64])
@pytest.mark.parametrize(
    "rounded",
    [
        [node("Cast", "q", "y", to=TensorProto.INT32)],
        [node("Floor", "q", "y")],
        [
            node("Abs", "q", "a"),
            node("Floor", "a", "b"),
            node("Sign", "q", "s"),
            node("Mul", "b s", "y"),
        ],
        [
            node("Abs", "q", "a"),
            node("Floor", "a", "b"),
            node("Sign", "q", "s"),
            node("Mul", "s b", "y"),
        ],
    ],
    ids=["cast", "floor", "trunc", "sign first"],
)
def test_a_quotient_of_floats_becomes_one_of_integers_once(rounded, kind):
    """Once the integer quotient of a Cast to int32 was taken for one of floats again, without end."""
    dtype = np.int32 if kind == TensorProto.INT32 else np.int64
    nodes = [
        node("Cast", "x", "xf", to=TensorProto.FLOAT),
        node("Div", "xf f", "q"),
        *rounded,
    ]
    model = model_with(nodes, kind, dtype)
    before = run(model, {"x": X.astype(dtype)})["y"]
    rewrite(model)
    assert "Div" in operators_of(model)
    after = run(model, {"x": X.astype(dtype)})["y"]
    assert after.tolist() == before.tolist()


@pytest.mark.parametrize(
    "quotient", [[node("Div", "x n", "d")], FLOORED], ids=["truncated", "down"]
)
def test_what_a_quotient_leaves_is_a_remainder(quotient):
    rest = [*quotient, node("Mul", "d n", "m"), node("Sub", "x m", "y")]
    assert same_numbers(rest, take_remainders) == 1
    as_floats = [
        *quotient,
        node("Cast", "x", "xf", to=1),
        node("Cast", "d", "df", to=1),
        node("Mul", "df f", "m"),
        node("Sub", "xf m", "y"),
    ]
    assert same_numbers(as_floats, take_remainders) == 1


def test_a_remainder_of_integers_as_floats_is_one_of_integers():
    cast = node("Cast", "x", "xf", to=TensorProto.FLOAT)
    assert (
        same_numbers([cast, node("Mod", "xf f", "y", fmod=1)], take_remainders)
        == 1
    )
    halved = node("Mul", "xf half", "h")
    nodes = [cast, halved, node("Mod", "h f", "y", fmod=1)]
    assert same_numbers(nodes, take_remainders) == 0


@pytest.mark.parametrize(
    "nodes",
    [
        [node("Div", "x n", "d"), node("Mul", "d k", "m"), node("Sub", "x m", "y")],
        [node("Div", "x n", "d"), node("Mul", "d n", "m"), node("Sub", "m x", "y")],
        [node("Div", "x n", "d"), node("Mul", "d n", "m"), node("Neg", "x", "z"), node("Sub", "z m", "y")],
        [node("Div", "x n", "d"), node("Mul", "d columns", "m"), node("Sub", "x m", "y")],
    ],
)  # fmt: skip
def test_other_differences_stay(nodes):
    assert same_numbers(nodes, take_remainders) == 0
