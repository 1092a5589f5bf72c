"""lower_interpolation: what the machine interpolates, what becomes products with matrices, and what stays."""

import numpy as np
import pytest

from mrt.rewrite.lower_interpolation import lower_interpolation
from tests.graphs import apply_pass, constant_named, graph_of, node, operators_of

IMAGE = {"x": (1, 2, 5, 4)}


def _to(height, width, shape=None, **attributes):
    sizes = np.array([*(shape or IMAGE["x"])[:-2], height, width])
    return graph_of([node("Resize", "x - - s", "y", **attributes)], {"x": shape or IMAGE["x"]}, {"s": sizes})


@pytest.mark.parametrize(
    ("mode", "written"),
    [("half_pixel", "half_pixel"), ("pytorch_half_pixel", "half_pixel"), ("align_corners", "align_corners")],
)
def test_images_are_interpolated_by_the_machine(mode, written):
    model = _to(9, 7, mode="linear", coordinate_transformation_mode=mode)
    lower_interpolation(model)
    assert operators_of(model) == ["Resize"]
    assert model.graph[0].attributes["coordinate_transformation_mode"].as_string() == written
    assert apply_pass(lower_interpolation, model) == 0


def test_a_single_row_of_pytorch_lies_at_the_start():
    model = _to(1, 4, mode="linear", coordinate_transformation_mode="pytorch_half_pixel")
    assert apply_pass(lower_interpolation, model) == 1
    assert operators_of(model) == ["Transpose", "MatMul", "Transpose"]
    assert constant_named(model, "y.weights").tolist() == [[1.0], [0.0], [0.0], [0.0], [0.0]]


def test_other_ranks_and_cubic_are_products():
    assert apply_pass(lower_interpolation, model := _to(4, 8, (2, 4, 4), mode="linear"), 1e-5) == 1
    assert operators_of(model) == ["Transpose", "MatMul", "Transpose"]
    assert apply_pass(lower_interpolation, model := _to(9, 7, mode="cubic"), 1e-5) == 1
    assert operators_of(model) == ["Transpose", "MatMul", "Transpose"] * 2


def test_halves_between_neighbours():
    model = _to(5, 2, mode="linear", coordinate_transformation_mode="half_pixel", shape=(1, 5, 4))
    lower_interpolation(model)
    assert constant_named(model, "y.weights").T.tolist() == [[0.5, 0.5, 0.0, 0.0], [0.0, 0.0, 0.5, 0.5]]


def test_the_nearest_is_looked_up():
    model = _to(3, 4, coordinate_transformation_mode="align_corners", nearest_mode="ceil")
    assert apply_pass(lower_interpolation, model, 0) == 1
    assert constant_named(model, "y.places").tolist() == [0, 2, 4]


def test_steps_that_the_machine_does_not_have_become_a_matrix():
    model = _to(5, 4099, mode="linear", shape=(1, 1, 5, 7))
    lower_interpolation(model)
    assert operators_of(model) == ["Transpose", "MatMul", "Transpose"]


def test_smoothing_stays():
    assert lower_interpolation(_to(3, 2, mode="linear", antialias=1)) == 0
