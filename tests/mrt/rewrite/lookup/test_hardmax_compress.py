"""lower_hardmax_compress: before and after on the smallest graphs, and where it must not apply."""

import numpy as np
import pytest

from mrt.rewrite.lookup.hardmax_compress import lower_hardmax_compress
from tests.support.graphs import (
    apply_pass,
    constant_named,
    graph_of,
    node,
    operators_of,
    run,
)

SHAPE = {"x": (2, 3, 5)}


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_hardmax_is_where_the_first_of_the_greatest_is(axis):
    model = graph_of([node("Hardmax", "x", "y", axis=axis)], SHAPE)
    assert apply_pass(lower_hardmax_compress, model, 0) == 1
    assert operators_of(model) == ["ArgMax", "Equal", "Cast"]


def test_of_equals_the_first_is_the_greatest():
    model = graph_of([node("Hardmax", "x", "y")], {"x": (1, 4)})
    lower_hardmax_compress(model)
    assert run(model, {"x": np.float32([[1, 3, 3, 2]])})["y"].tolist() == [
        [0, 1, 0, 0]
    ]


@pytest.mark.parametrize(
    ("attributes", "kept"),
    [({"axis": 2}, [1, 2]), ({}, [1, 2]), ({"axis": -2}, [1, 2])],
)
def test_compress_keeps_what_a_condition_that_may_be_shorter_allows(
    attributes, kept
):
    condition = np.array([False, True, True])
    model = graph_of(
        [node("Compress", "x c", "y", **attributes)], SHAPE, {"c": condition}
    )
    assert apply_pass(lower_hardmax_compress, model, 0) == 1
    assert constant_named(model, "y.kept").tolist() == kept


def test_a_computed_condition_stays():
    nodes = [node("Greater", "x zero", "c"), node("Compress", "x c", "y")]
    assert (
        lower_hardmax_compress(graph_of(nodes, {"x": (4,)}, {"zero": 0.0})) == 0
    )


def test_a_cast_takes_the_type_of_its_other_operand():
    model = graph_of(
        [node("CastLike", "x k", "y")], SHAPE, {"k": np.zeros(1, np.int32)}
    )
    assert apply_pass(lower_hardmax_compress, model, 0) == 1
    assert model.graph[0].attributes["to"].as_int() == 6  # INT32


def test_the_middle_is_cut_out_or_surrounded():
    crop = node("CenterCropPad", "x s", "y", axes=[1, -1])
    model = graph_of([crop], SHAPE, {"s": np.array([6, 2])})
    assert lower_hardmax_compress(model) == 1
    # 3 to 6: one in front, two behind; 5 to 2: one off in front, two behind
    assert constant_named(model, "y.pads").tolist() == [0, 1, -1, 0, 2, -2]
