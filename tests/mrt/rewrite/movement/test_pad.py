"""canonicalize_pad: before and after on the smallest graphs, and where it must not apply."""

import numpy as np
import pytest

from mrt.rewrite import rewrite
from mrt.rewrite.movement.pad import canonicalize_pad
from tests.support.graphs import (
    apply_pass,
    constant_named,
    graph_of,
    node,
    operators_of,
)


def _written(model):
    return constant_named(model, model.graph[-1].inputs[1].name).tolist()


def test_a_value_is_written():
    model = graph_of(
        [node("Pad", "x p", "y")], {"x": (2, 3)}, {"p": np.array([0, 1, 0, 2])}
    )
    assert apply_pass(canonicalize_pad, model, 0) == 1
    assert constant_named(model, "y.padding") == 0.0
    assert apply_pass(canonicalize_pad, model) == 0


def test_axes_are_spread_over_all():
    weights = {"p": np.array([1, 2, 3, 4]), "v": 0.5, "a": np.array([-1, 0])}
    model = graph_of([node("Pad", "x p v a", "y")], {"x": (2, 3, 4)}, weights)
    assert apply_pass(canonicalize_pad, model, 0) == 1
    assert _written(model) == [2, 0, 1, 4, 0, 3]


def test_negative_pads_are_a_slice():
    model = graph_of(
        [node("Pad", "x p", "y")],
        {"x": (4, 5)},
        {"p": np.array([-1, 2, 1, -3])},
    )
    assert apply_pass(canonicalize_pad, model, 0) == 1
    assert operators_of(model) == ["Slice", "Pad"]
    assert _written(model) == [0, 2, 1, 0]


@pytest.mark.parametrize("mode", ["reflect", "edge"])
def test_other_modes_stay(mode):
    model = graph_of(
        [node("Pad", "x p", "y", mode=mode)],
        {"x": (4, 5)},
        {"p": np.array([1, 2, 1, 1])},
    )
    assert apply_pass(canonicalize_pad, model) == 0


def test_pads_that_are_no_pair_for_each_axis_stay():
    """Inference accepts a single number, whose shape says nothing."""
    model = graph_of([node("Pad", "x p", "y")], {"x": ()}, {"p": np.array(-3)})
    assert canonicalize_pad(model) == 0


def test_a_number_has_no_axes_to_pad():
    model = graph_of(
        [node("Pad", "x p", "r"), node("Reshape", "r s", "y")],
        {"x": ()},
        {"p": np.zeros(0, np.int64), "s": np.array([1, 1])},
    )
    assert canonicalize_pad(model) == 1
    assert canonicalize_pad(model) == 0
    rewrite(model)
    assert operators_of(model) == ["Reshape"]
