"""lower_pad_modes: before and after on the smallest graphs, and where it must not apply."""

import numpy as np
import pytest

from mrt.rewrite.movement.pad_modes import LONGEST_AXIS, lower_pad_modes
from tests.support.graphs import (
    apply_pass,
    constant_named,
    graph_of,
    node,
    operators_of,
)


@pytest.mark.parametrize(
    ("mode", "places"),
    [
        ("edge", [0, 0, 0, 1, 2, 2]),
        ("reflect", [2, 1, 0, 1, 2, 1]),
        ("wrap", [1, 2, 0, 1, 2, 0]),
    ],
)
def test_a_padded_axis_is_looked_up(mode, places):
    pad = node("Pad", "x p", "y", mode=mode)
    model = graph_of([pad], {"x": (2, 3)}, {"p": np.array([0, 2, 0, 1])})
    assert apply_pass(lower_pad_modes, model, 0) == 1
    assert operators_of(model) == ["Gather"]
    assert constant_named(model, "y.indices").tolist() == places


def test_pads_of_constants_and_of_nothing_are_passed_over():
    nodes = [
        node("Pad", "x p", "a"),
        node("Pad", "a none", "b", mode="edge"),
        node("Pad", "b p", "y", mode="edge"),
    ]
    pads = {"p": np.array([0, 2, 0, 1]), "none": np.zeros(4, np.int64)}
    model = graph_of(nodes, {"x": (2, 3)}, pads)
    assert apply_pass(lower_pad_modes, model, 0) == 1
    assert operators_of(model) == ["Pad", "Pad", "Gather"]


def test_a_long_axis_stays():
    pad = node("Pad", "x p", "y", mode="edge")
    pads = np.array([1, LONGEST_AXIS])
    model = graph_of([pad], {"x": (3,)}, {"p": pads})
    assert lower_pad_modes(model) == 0
