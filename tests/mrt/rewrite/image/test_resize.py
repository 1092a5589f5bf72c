"""lower_resize: what the machine interpolates, what becomes products with matrices, and what stays."""

import numpy as np
import pytest

from mrt.rewrite.image.resize import lower_resize
from tests.support.graphs import (
    apply_pass,
    constant_named,
    graph_of,
    node,
    operators_of,
)

IMAGE = {"x": (1, 2, 5, 4)}


def _to(height, width, shape=None, **attributes):
    sizes = np.array([*(shape or IMAGE["x"])[:-2], height, width])
    return graph_of(
        [node("Resize", "x - - s", "y", **attributes)],
        {"x": shape or IMAGE["x"]},
        {"s": sizes},
    )


@pytest.mark.parametrize(
    ("mode", "written"),
    [
        ("half_pixel", "half_pixel"),
        ("pytorch_half_pixel", "half_pixel"),
        ("align_corners", "align_corners"),
    ],
)
def test_images_are_interpolated_by_the_machine(mode, written):
    model = _to(9, 7, mode="linear", coordinate_transformation_mode=mode)
    lower_resize(model)
    assert operators_of(model) == ["Resize"]
    assert (
        model.graph[0].attributes["coordinate_transformation_mode"].as_string()
        == written
    )
    assert apply_pass(lower_resize, model) == 0


def test_a_single_row_of_pytorch_lies_at_the_start():
    model = _to(
        1, 4, mode="linear", coordinate_transformation_mode="pytorch_half_pixel"
    )
    assert apply_pass(lower_resize, model) == 1
    assert operators_of(model) == ["Transpose", "MatMul", "Transpose"]
    assert constant_named(model, "y.weights").tolist() == [
        [1.0],
        [0.0],
        [0.0],
        [0.0],
        [0.0],
    ]


def test_other_ranks_and_cubic_are_products():
    assert (
        apply_pass(
            lower_resize, model := _to(4, 8, (2, 4, 4), mode="linear"), 1e-5
        )
        == 1
    )
    assert operators_of(model) == ["Transpose", "MatMul", "Transpose"]
    assert apply_pass(lower_resize, model := _to(9, 7, mode="cubic"), 1e-5) == 1
    assert operators_of(model) == ["Transpose", "MatMul", "Transpose"] * 2


def test_halves_between_neighbours():
    model = _to(
        5,
        2,
        mode="linear",
        coordinate_transformation_mode="half_pixel",
        shape=(1, 5, 4),
    )
    lower_resize(model)
    assert constant_named(model, "y.weights").T.tolist() == [
        [0.5, 0.5, 0.0, 0.0],
        [0.0, 0.0, 0.5, 0.5],
    ]


def test_the_nearest_is_looked_up():
    model = _to(
        3,
        4,
        coordinate_transformation_mode="align_corners",
        nearest_mode="ceil",
    )
    assert apply_pass(lower_resize, model, 0) == 1
    assert constant_named(model, "y.places").tolist() == [0, 2, 4]


def test_steps_that_the_machine_does_not_have_become_a_matrix():
    model = _to(5, 4099, mode="linear", shape=(1, 1, 5, 7))
    lower_resize(model)
    assert operators_of(model) == ["Transpose", "MatMul", "Transpose"]


@pytest.mark.parametrize("mode", ["linear", "cubic"])
@pytest.mark.parametrize("excluded", [0, 1])
def test_smoothing_widens_the_kernel(mode, excluded):
    model = _to(3, 2, mode=mode, antialias=1, exclude_outside=excluded)
    assert apply_pass(lower_resize, model, 1e-5) == 1
    assert operators_of(model) == ["Transpose", "MatMul", "Transpose"] * 2


def test_a_smoothed_half_weighs_four_neighbours():
    model = _to(5, 2, mode="linear", antialias=1)
    lower_resize(model)
    # from 4 to 2: places 0.5 and 2.5, distances 1/2 and 3/2 of a triangle 2 wide; the border's stand for those outside
    assert constant_named(model, "y.weights").T.tolist() == [
        [0.5, 0.375, 0.125, 0],
        [0, 0.125, 0.375, 0.5],
    ]


@pytest.mark.parametrize("mode", ["linear", "nearest"])
def test_a_part_that_reaches_outside_is_filled(mode):
    sizes = np.array([1, 2, 3, 3])
    region = np.float32([0, 0, 0.25, -0.5, 1, 1, 1.25, 0.75])
    crop = node("Resize", "x r - s", "y", mode=mode, coordinate_transformation_mode="tf_crop_and_resize",
                extrapolation_value=7.0)  # fmt: skip
    model = graph_of([crop], IMAGE, {"s": sizes, "r": region})
    assert apply_pass(lower_resize, model, 1e-5) == 1
    # rows at 1, 3, 5 of 0..4; columns at -1.5, 0.375, 2.25 of 0..3
    assert constant_named(model, "y.outside")[0, 0].tolist() == [
        [True, False, False]
    ] * 2 + [[True] * 3]


@pytest.mark.parametrize("mode", ["linear", "nearest"])
@pytest.mark.parametrize(
    ("region", "columns"), [((0.2, 1.2), 6), ((0.4, 1.4), 6), ((-0.3, 0.7), 11)]
)
def test_a_column_exactly_on_the_edge_is_inside(mode, region, columns):
    """0.2 * 7 + 4 * 7 / 5 = 7, the last of 8 columns, though 0.2 of 32 bits is a little more."""
    start, end = region
    crop = node("Resize", "x r - s", "y", mode=mode, coordinate_transformation_mode="tf_crop_and_resize",
                extrapolation_value=7.0)  # fmt: skip
    weights = {
        "s": np.array([1, 1, 2, columns]),
        "r": np.float32([0, 0, 0, start, 1, 1, 1, end]),
    }
    model = graph_of([crop], {"x": (1, 1, 2, 8)}, weights)
    assert apply_pass(lower_resize, model, 1e-5) == 1


def test_one_factor_for_both_sides_keeps_their_ratio():
    square = {"x": (1, 2, 4, 4)}
    resize = node(
        "Resize",
        "x - - s",
        "y",
        axes=[2, 3],
        keep_aspect_ratio_policy="not_larger",
    )
    model = graph_of([resize], square, {"s": np.array([7, 6])})
    assert apply_pass(lower_resize, model, 0) == 1
    assert tuple(model.graph.outputs[0].shape) == (1, 2, 6, 6)


@pytest.mark.parametrize(
    ("mode", "old", "new", "operators"),
    [
        ("half_pixel", 301, 1201, ["Resize"]),  # 1201 steps
        ("half_pixel", 300, 1201, ["Transpose", "MatMul", "Transpose"]),  # 2402
        ("asymmetric", 300, 1201, ["Resize"]),  # 1201
        ("asymmetric", 300, 2051, ["Transpose", "MatMul", "Transpose"]),  # 2051
        ("align_corners", 300, 2049, ["Resize"]),  # 2048
        ("align_corners", 300, 2050, ["Transpose", "MatMul", "Transpose"]),  # 2049
        ("align_corners", 1, 1025, ["Resize"]),  # 1025
        ("align_corners", 1, 1026, ["Transpose", "MatMul", "Transpose"]),  # 2052
    ],
)  # fmt: skip
def test_the_machine_has_2048_steps_between_two_pixels(
    mode, old, new, operators
):
    model = _to(
        4,
        new,
        mode="linear",
        coordinate_transformation_mode=mode,
        shape=(1, 1, 4, old),
    )
    lower_resize(model)
    assert operators_of(model) == operators


def test_an_image_is_enlarged_around_its_middle():
    """The sizes are rounded down: 5 * 1.7 to 8, 4 * 2.3 to 9."""
    resize = node(
        "Resize",
        "x - f",
        "y",
        mode="linear",
        coordinate_transformation_mode="half_pixel_symmetric",
    )
    model = graph_of([resize], IMAGE, {"f": [1.0, 1.0, 1.7, 2.3]})
    assert apply_pass(lower_resize, model, 1e-5) == 1
    assert operators_of(model) == ["Transpose", "MatMul", "Transpose"] * 2


@pytest.mark.parametrize(("rows", "lowered"), [(31, "Resize"), (32, "MatMul")])
def test_steps_of_sixteen_rows_are_too_long_for_the_machine(rows, lowered):
    model = _to(2, 2, (1, 1, rows, 2), mode="linear")
    lower_resize(model)
    assert lowered in operators_of(model)
