"""lower_resize_by_integers: before and after on the smallest graphs, and where it must not apply."""

import numpy as np
import pytest

from mrt.rewrite.image.resize_by_integers import lower_resize_by_integers
from tests.support.graphs import (
    apply_pass,
    constant_named,
    graph_of,
    node,
    operators_of,
)


def _resize(scales, mode="asymmetric", nearest="floor"):
    resize = node(
        "Resize",
        "x - s",
        "y",
        coordinate_transformation_mode=mode,
        nearest_mode=nearest,
    )
    return graph_of([resize], {"x": (1, 2, 3, 4)}, {"s": scales})


def test_whole_factors_repeat_by_concat():
    model = _resize([1.0, 1.0, 2.0, 3.0])
    assert apply_pass(lower_resize_by_integers, model, 0) == 1
    inner = ["Reshape", "Concat", "Concat", "Reshape"]
    assert operators_of(model) == ["Transpose", *inner, "Transpose"]
    assert [len(entry.inputs) for entry in model.graph] == [1, 2, 2, 3, 2, 1]
    # with channels last, where a copy is one of runs
    assert constant_named(model, "y.apart").tolist() == [1, 3, 1, 4, 1, 2]


@pytest.mark.parametrize(
    ("scales", "mode", "nearest"),
    [
        ([1.0, 1.0, 1.5, 2.0], "asymmetric", "floor"),
        ([1.0, 1.0, 2.1, 2.0], "asymmetric", "floor"),
        (
            [1.0, 2.0, 2.0, 2.0],
            "asymmetric",
            "floor",
        ),  # would need 7 dimensions
        ([1.0, 1.0, 2.0, 2.0], "asymmetric", "ceil"),
        ([1.0, 1.0, 2.0, 2.0], "half_pixel", "floor"),
        ([1.0, 1.0, 2.0, 2.0], "align_corners", "round_prefer_floor"),
    ],
)
def test_what_does_not_repeat_each_element_stays(scales, mode, nearest):
    assert (
        apply_pass(lower_resize_by_integers, _resize(scales, mode, nearest))
        == 0
    )


@pytest.mark.parametrize(
    ("shape", "scales", "apart", "copies"),
    [
        ((1, 2, 3), [1.0, 1.0, 2.0], [1, 2, 3, 1], [2]),
        ((1, 2, 3, 4), [1.0, 3.0, 2.0, 1.0], [1, 2, 1, 3, 1, 4], [3, 2]),
        ((1, 2, 3, 4, 2), [1.0, 1.0, 1.0, 1.0, 2.0], [1, 2, 3, 4, 2, 1], [2]),
    ],
)
def test_any_axis_may_grow(shape, scales, apart, copies):
    resize = node(
        "Resize",
        "x - s",
        "y",
        coordinate_transformation_mode="asymmetric",
        nearest_mode="floor",
    )
    model = graph_of([resize], {"x": shape}, {"s": scales})
    assert apply_pass(lower_resize_by_integers, model, 0) == 1
    assert constant_named(model, "y.apart").tolist() == apart
    assert [
        len(entry.inputs) for entry in model.graph if entry.op_type == "Concat"
    ] == copies


def test_scales_of_some_axes():
    resize = node(
        "Resize",
        "x - s",
        "y",
        coordinate_transformation_mode="asymmetric",
        nearest_mode="floor",
        axes=[-2],
    )
    model = graph_of([resize], {"x": (1, 2, 3, 4)}, {"s": [3.0]})
    assert apply_pass(lower_resize_by_integers, model, 0) == 1
    assert operators_of(model)[1:-1] == ["Reshape", "Concat", "Reshape"]
    assert constant_named(model, "y.apart").tolist() == [1, 3, 1, 4, 2]


def test_interpolation_stays():
    model = graph_of(
        [node("Resize", "x - s", "y", mode="linear")],
        {"x": (1, 2, 3, 4)},
        {"s": np.array([1, 1, 2, 2], np.float32)},
    )
    assert apply_pass(lower_resize_by_integers, model) == 0


def test_a_factor_of_thousands_is_left_to_a_lookup():
    """Each copy would be an operand of a Concat."""
    resize = node(
        "Resize",
        "x - s",
        "y",
        coordinate_transformation_mode="asymmetric",
        nearest_mode="floor",
    )
    model = graph_of(
        [resize], {"x": (1, 1, 1, 2)}, {"s": [1.0, 1.0, 1.0, 1025.0]}
    )
    assert apply_pass(lower_resize_by_integers, model, 0) == 0
