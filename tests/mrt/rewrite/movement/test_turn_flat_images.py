"""turn_flat_images: heads of detectors and patches of transformers, and where others read what is turned."""

import numpy as np
import pytest

from mrt.rewrite.movement.turn_flat_images import turn_flat_images
from tests.support.graphs import (
    apply_pass,
    constant_named,
    graph_of,
    node,
    operators_of,
)

WEIGHTS = {
    "flat": np.array([2, 3, -1]),
    "rows": np.array([2, 15, -1]),
}
TURN = {"perm": [0, 2, 1]}


def test_patches_are_turned_as_images():
    nodes = [
        node("Reshape", "x flat", "f"),
        node("Transpose", "f", "y", **TURN),
    ]
    model = graph_of(nodes, {"x": (2, 3, 4, 5)}, WEIGHTS)
    assert apply_pass(turn_flat_images, model, 0) == 1
    assert operators_of(model) == ["Transpose", "Reshape"]
    assert constant_named(model, "y.shape").tolist() == [2, 20, 3]


def test_images_that_are_joined_are_turned_one_by_one():
    nodes = [
        node("Reshape", "a flat", "f"),
        node("Reshape", "b flat", "g"),
        node("Concat", "f g", "c", axis=2),
        node("Transpose", "c", "y", **TURN),
    ]
    model = graph_of(nodes, {"a": (2, 3, 4, 5), "b": (2, 3, 2, 1)}, WEIGHTS)
    assert apply_pass(turn_flat_images, model, 0) == 1
    turned = ["Transpose", "Reshape"]
    assert operators_of(model) == [*turned, *turned, "Concat"]


@pytest.mark.parametrize(
    ("shape", "new", "axis", "perm"),
    [
        ((2, 3, 4, 5), "flat", 2, [1, 0, 2]),
        ((2, 3, 4, 5), "flat", 1, [0, 2, 1]),
        ((2, 3, 5, 4), "rows", 2, [0, 2, 1]),  # channels are cut
        ((2, 3, 4, 5, 1), "flat", 2, [0, 2, 1]),
    ],
)
def test_other_movements_stay(shape, new, axis, perm):
    nodes = [
        node("Reshape", f"a {new}", "f"),
        node("Reshape", f"b {new}", "g"),
        node("Concat", "f g", "c", axis=axis),
        node("Transpose", "c", "y", perm=perm),
    ]
    model = graph_of(nodes, {"a": shape, "b": shape}, WEIGHTS)
    assert apply_pass(turn_flat_images, model) == 0


@pytest.mark.parametrize("outputs", ["y f", "y c"])
def test_what_others_read_too_stays(outputs):
    nodes = [
        node("Reshape", "x flat", "f"),
        node("Reshape", "z flat", "g"),
        node("Concat", "f g", "c", axis=2),
        node("Transpose", "c", "y", **TURN),
    ]
    shapes = {"x": (2, 3, 4, 5), "z": (2, 3, 4, 5)}
    model = graph_of(nodes, shapes, WEIGHTS, outputs=outputs)
    assert apply_pass(turn_flat_images, model) == 0


def test_a_part_that_is_no_image_keeps_all():
    nodes = [
        node("Reshape", "x flat", "f"),
        node("Concat", "f z", "c", axis=2),
        node("Transpose", "c", "y", **TURN),
    ]
    shapes = {"x": (2, 3, 4, 5), "z": (2, 3, 7)}
    model = graph_of(nodes, shapes, WEIGHTS)
    assert apply_pass(turn_flat_images, model) == 0
