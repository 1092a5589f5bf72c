"""subtract_running_sums: before and after on the smallest graphs, and where it must not apply."""

import numpy as np
import pytest

from mrt.rewrite.linear.running_sums import subtract_running_sums
from tests.support.graphs import apply_pass, graph_of, node, operators_of

LENGTH = 8
ONES = np.tril(np.ones((LENGTH, LENGTH), np.float32))
SLICE = "{0} {1}_start {1}_stop axis one"


def windows(ones=ONES, *, pads=(0, 1, 0, 0), fill=0.0, axis=1, upper=3):
    """Return sums over three places: running sums, a zero in front, and two Slices that are subtracted."""
    nodes = [
        node("Gemm", "x w b", "c", transB=1),
        node("Pad", "c pads fill", "p"),
        node("Slice", SLICE.format("p", "upper"), "u"),
        node("Slice", SLICE.format("p", "lower"), "l"),
        node("Sub", "u l", "y"),
    ]
    length = (2, LENGTH)[axis] + pads[axis] + pads[axis + 2]
    constants = {
        "w": ones,
        "b": np.zeros(LENGTH, np.float32),
        "pads": np.array(pads),
        "fill": np.float32(fill),
        "axis": np.array([axis]),
        "one": np.array([1]),
        "upper_start": np.array([upper]),
        "upper_stop": np.array([length]),
        "lower_start": np.array([0]),
        "lower_stop": np.array([length - upper]),
    }
    return graph_of(nodes, {"x": (2, LENGTH)}, constants)


def test_the_difference_of_running_sums_is_a_sum_over_a_window():
    model = windows()
    assert apply_pass(subtract_running_sums, model) == 1
    assert operators_of(model) == ["Gemm", "Reshape"]
    weights = model.graph[0].inputs[1].const_value.numpy()
    expected = np.array(
        [
            [row <= place < row + 3 for place in range(LENGTH)]
            for row in range(6)
        ]
    )
    np.testing.assert_array_equal(weights, expected)


def test_running_sums_may_be_reshaped_in_front_of_the_slices():
    shaped = graph_of(
        [
            node("Gemm", "x w b", "c", transB=1),
            node("Reshape", "c shape", "r"),
            node("Slice", "r a z axis one", "u"),
            node("Slice", "r o y_stop axis one", "l"),
            node("Sub", "u l", "y"),
        ],
        {"x": (2, LENGTH)},
        {
            "w": ONES,
            "b": np.zeros(LENGTH, np.float32),
            "shape": np.array([1, 2, LENGTH]),
            "axis": np.array([2]),
            "one": np.array([1]),
            "a": np.array([2]),
            "z": np.array([LENGTH]),
            "o": np.array([0]),
            "y_stop": np.array([LENGTH - 2]),
        },
    )
    assert apply_pass(subtract_running_sums, shaped) == 1
    assert operators_of(shaped) == ["Gemm", "Reshape"]


@pytest.mark.parametrize(
    "changed",
    [
        {"ones": 2 * ONES},
        {"ones": np.ones_like(ONES)},
        {"fill": 1.0},
        {"pads": (1, 1, 0, 0)},
        {"axis": 0, "upper": 1},
        {"pads": (0, -1, 0, 0)},
    ],
    ids=str,
)
def test_other_products_pads_and_axes_stay(changed):
    assert apply_pass(subtract_running_sums, windows(**changed)) == 0


def test_every_window_of_two_running_sums_is_no_sum_of_one():
    nodes = [
        node("Gemm", "x w b", "c", transB=1),
        node("Slice", "c one two axis one", "u"),
        node("Slice", "c zero one axis one", "l"),
        node("Reshape", "u column", "above"),
        node("Reshape", "l row", "below"),
        node("Sub", "above below", "y"),
    ]
    numbers = {"zero": [0], "one": [1], "two": [2], "axis": [1]}
    shapes = {"column": [2, 1, 1], "row": [1, 2, 1]}
    constants = {
        name: np.array(it) for name, it in {**numbers, **shapes}.items()
    }
    constants |= {"w": ONES, "b": np.zeros(LENGTH, np.float32)}
    model = graph_of(nodes, {"x": (2, LENGTH)}, constants)
    assert apply_pass(subtract_running_sums, model) == 0
