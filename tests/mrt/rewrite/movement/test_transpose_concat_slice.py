"""canonicalize_transpose_concat_slice: before and after on the smallest graphs, and where it must not apply."""

import numpy as np
import pytest

from mrt.rewrite.movement.transpose_concat_slice import (
    canonicalize_transpose_concat_slice,
)
from tests.support.graphs import (
    apply_pass,
    constant_named,
    graph_of,
    node,
    operators_of,
)


@pytest.mark.parametrize(
    ("one", "weights", "name", "expected"),
    [
        (node("Transpose", "x", "y"), {}, "perm", [2, 1, 0]),
        (node("Concat", "x x", "y", axis=-2), {}, "axis", 1),
    ],
)
def test_axes_are_written_from_the_front(one, weights, name, expected):
    model = graph_of([one], {"x": (2, 3, 4)}, weights)
    assert apply_pass(canonicalize_transpose_concat_slice, model, 0) == 1
    assert (
        model.graph[0].attributes[name].value == expected
        or list(model.graph[0].attributes[name].value) == expected
    )
    assert apply_pass(canonicalize_transpose_concat_slice, model) == 0


def test_a_slice_is_written_inside_the_dimensions():
    weights = {
        "s": np.array([-3, 1]),
        "e": np.array([1 << 62, -1]),
        "a": np.array([-1, 0]),
        "t": np.array([2, 1]),
    }
    model = graph_of(
        [node("Slice", "x s e a t", "y")], {"x": (4, 3, 5)}, weights
    )
    assert apply_pass(canonicalize_transpose_concat_slice, model, 0) == 1
    found = {
        role: constant_named(model, f"y.{role}").tolist()
        for role in ("starts", "ends", "axes", "steps")
    }
    assert found == {
        "starts": [1, 2],
        "ends": [3, 5],
        "axes": [0, 2],
        "steps": [1, 2],
    }
    assert apply_pass(canonicalize_transpose_concat_slice, model) == 0


def test_a_slice_without_axes_and_steps_gets_them():
    model = graph_of(
        [node("Slice", "x s e", "y")],
        {"x": (4, 3)},
        {"s": np.array([1, 0]), "e": np.array([3, 2])},
    )
    assert apply_pass(canonicalize_transpose_concat_slice, model, 0) == 1
    assert constant_named(model, "y.axes").tolist() == [0, 1]


@pytest.mark.parametrize(
    ("start", "end", "step", "kept", "by"),
    [(-1, -9, -1, (0, 4), 1), (3, 0, -2, (1, 4), 2), (2, 1, -5, (2, 3), 5)],
)
def test_a_slice_backwards_is_one_forwards_and_an_axis_turned_round(
    start, end, step, kept, by
):
    weights = {
        "s": np.array([start]),
        "e": np.array([end]),
        "a": np.array([0]),
        "t": np.array([step]),
    }
    model = graph_of([node("Slice", "x s e a t", "y")], {"x": (4, 3)}, weights)
    assert apply_pass(canonicalize_transpose_concat_slice, model, 0) == 1
    assert operators_of(model) == ["Slice", "Slice"]
    parts = [
        [constant_named(model, value.name).item() for value in entry.inputs[1:]]
        for entry in model.graph
    ]
    assert parts == [[*kept, 0, by], [-1, -(2**63), 0, -1]]


def test_an_empty_slice_backwards_stays():
    weights = {
        "s": np.array([0]),
        "e": np.array([2]),
        "a": np.array([0]),
        "t": np.array([-1]),
    }
    assert (
        canonicalize_transpose_concat_slice(
            graph_of([node("Slice", "x s e a t", "y")], {"x": (4, 3)}, weights)
        )
        == 0
    )


@pytest.mark.parametrize("operands", ["x s e i", "x s e a i", "x s e - i"])
def test_a_slice_with_computed_axes_or_steps_stays(operands):
    nodes = [node("Cast", "z", "i", to=7), node("Slice", operands, "y")]
    constants = {"s": np.array([1]), "e": np.array([3]), "a": np.array([0])}
    shapes = {"x": (4, 3), "z": (1,)}
    model = graph_of(nodes, shapes, constants)
    assert canonicalize_transpose_concat_slice(model) == 0
