"""lower_col2im: before and after on the smallest graphs, and where it must not apply."""

import numpy as np

from mrt.rewrite.image.col2im import lower_col2im
from tests.support.graphs import apply_pass, graph_of, node, operators_of, run


def test_columns_that_overlap_are_added():
    model = graph_of(
        [node("Col2Im", "x s b", "y")],
        {"x": (1, 2, 3)},
        {"s": np.array([1, 4]), "b": np.array([1, 2])},
    )
    assert apply_pass(lower_col2im, model) == 1
    assert operators_of(model) == ["Reshape", "ConvTranspose", "Reshape"]
    # the first row lies at 0, 1, 2, the second one place on
    assert run(model, {"x": np.float32([[[1, 2, 3], [10, 20, 30]]])})[
        "y"
    ].tolist() == [[[[1, 12, 23, 30]]]]


def test_what_no_column_reaches_is_zero():
    sizes = {"s": np.array([1, 5]), "b": np.array([1, 2])}
    model = graph_of(
        [node("Col2Im", "x s b", "y", strides=[1, 2])], {"x": (1, 2, 2)}, sizes
    )
    assert apply_pass(lower_col2im, model) == 1
    assert run(model, {"x": np.float32([[[1, 2], [3, 4]]])})["y"].tolist() == [
        [[[1, 3, 2, 4, 0]]]
    ]


def test_a_computed_image_shape_stays():
    nodes = [node("Shape", "z", "s"), node("Col2Im", "x s b", "y")]
    shapes = {"x": (1, 2, 3), "z": (1, 4)}
    assert lower_col2im(graph_of(nodes, shapes, {"b": np.array([1, 2])})) == 0
