"""Logits whose masked entries are no numbers to compare: which values they are."""

import numpy as np
import pytest

from mrt.graph.masked_logits import names_behind_masks
from tests.support.graphs import graph_of, node

SHUT = np.array([0.0, 0.0, -1e9], np.float32)
SOFTMAX = node("Softmax", "t", "y")


@pytest.mark.parametrize(
    ("nodes", "names"),
    [
        ([node("Add", "x m", "t"), SOFTMAX], {"t"}),
        ([node("Add", "x m", "a"), node("Add", "a m", "t"), SOFTMAX], {"a", "t"}),
        ([node("Concat", "x m", "t", axis=0), SOFTMAX], {"t"}),
        (
            [node("Add", "x m", "a"), node("Concat", "a x", "t", axis=0), SOFTMAX],
            {"a", "t"},
        ),
        (
            [
                node("Mul", "x m", "far"),
                node("Add", "x far", "a"),
                node("Concat", "a x", "t", axis=0),
                SOFTMAX,
            ],
            {"a", "t"},
        ),
        (
            [
                node("Add", "x m", "a"),
                node("ReduceMax", "a axis", "top"),
                node("Sub", "a top", "t"),
                SOFTMAX,
            ],
            {"a", "t"},
        ),
        ([node("Concat", "x x", "t", axis=0), SOFTMAX], set()),
        (
            [node("Add", "x x", "a"), node("Concat", "a x", "t", axis=0), SOFTMAX],
            set(),
        ),
        (
            [
                node("Add", "x m", "a"),
                node("Concat", "a x", "t", axis=0),
                node("Softmax", "t", "s"),
                node("Add", "s t", "y"),
            ],
            set(),
        ),
    ],
    ids=[
        "one mask",
        "two masks",
        "a mask beside the logits",
        "a sink",
        "a scaled mask",
        "less the maximum",
        "joined without masks",
        "a sum without masks",
        "read elsewhere",
    ],
)  # fmt: skip
def test_masked_entries_are_only_excluded(nodes, names):
    read = {name for it in nodes for name in it.input}
    weights = {"m": np.tile(SHUT, (2, 1)), "axis": np.array([1])}
    held = {name: array for name, array in weights.items() if name in read}
    model = graph_of(nodes, {"x": (2, 3)}, held)
    assert names_behind_masks(list(model.graph)) == names
