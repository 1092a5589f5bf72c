"""lower_split: before and after on the smallest graphs, and where it must not apply."""

import numpy as np
import pytest

from mrt.rewrite.movement.split import lower_split
from tests.support.graphs import (
    apply_pass,
    constant_named,
    graph_of,
    node,
    operators_of,
)


def test_each_piece_is_a_slice_of_its_name():
    split = node("Split", "x s", "a b", axis=-1)
    model = graph_of(
        [split], {"x": (2, 7)}, {"s": np.array([3, 4])}, outputs="a b"
    )
    assert apply_pass(lower_split, model, 0) == 1
    assert operators_of(model) == ["Slice", "Slice"]
    assert [value.name for value in model.graph.outputs] == ["a", "b"]
    assert constant_named(model, "b.starts").tolist() == [3]
    assert constant_named(model, "b.ends").tolist() == [7]


@pytest.mark.parametrize("pieces", [2, 3])
def test_even_pieces(pieces):
    names = ["a", "b", "c"][:pieces]
    split = node("Split", "x", " ".join(names), axis=0, num_outputs=pieces)
    model = graph_of([split], {"x": (7, 2)}, outputs=" ".join(names))
    assert apply_pass(lower_split, model, 0) == 1


def test_unknown_sizes_stay():
    model = graph_of(
        [node("Split", "x", "a b", axis=0, num_outputs=2)],
        {"x": ("n", 2)},
        outputs="a b",
    )
    assert lower_split(model) == 0
