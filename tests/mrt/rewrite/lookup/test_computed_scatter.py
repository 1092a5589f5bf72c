"""lower_computed_scatter: what onnxruntime computes, and where it must not apply."""

import numpy as np
import pytest

from mrt.errors import Unsupported
from mrt.rewrite.canonical import check
from mrt.rewrite.lookup.computed_scatter import lower_computed_scatter
from tests.support.graphs import (
    assert_same,
    graph_of,
    node,
    operators_of,
    run,
)

X = np.random.default_rng(5).normal(size=(4, 3)).astype(np.float32)
REDUCTIONS = ["none", "add", "mul", "max", "min"]


def computed(scatter, shapes, opset=20):
    """Return the scatter behind a Cast of the input p, which has its indices."""
    return graph_of(
        [node("Cast", "p", "i", to=7), scatter], shapes, opset=opset
    )


def updates(*shape):
    return np.random.default_rng(6).normal(size=shape).astype(np.float32)


def test_indices_in_i32():
    """ScatterElements may have them."""
    nodes = [
        node("Cast", "p", "i", to=6),
        node("ScatterElements", "x i u", "y"),
    ]
    feeds = {
        "x": X,
        "p": np.float32([[-1, 0, 2], [1, 3, -3]]),
        "u": updates(2, 3),
    }
    model = graph_of(nodes, {name: it.shape for name, it in feeds.items()})
    expected = run(model, feeds)
    assert lower_computed_scatter(model) == 1
    assert_same(expected, run(model, feeds), 0)


@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize(
    "indices",
    [[[3], [1]], [[-1], [0]], [[2], [2]]],
    ids=["apart", "from the end", "one row twice"],
)
def test_rows(indices, reduction):
    scatter = node("ScatterND", "x i u", "y", reduction=reduction)
    model = computed(scatter, {"x": (4, 3), "p": (2, 1), "u": (2, 3)})
    feeds = {"x": X, "p": np.float32(indices), "u": updates(2, 3)}
    expected = run(model, feeds)
    assert lower_computed_scatter(model) == 1
    assert "ScatterND" not in operators_of(model)
    assert_same(expected, run(model, feeds))


def test_single_elements_by_indices_in_two_axes():
    scatter = node("ScatterND", "x i u", "y")
    model = computed(scatter, {"x": (4, 3), "p": (2, 2), "u": (2,)})
    feeds = {"x": X, "p": np.float32([[3, 0], [1, -1]]), "u": updates(2)}
    expected = run(model, feeds)
    assert lower_computed_scatter(model) == 1
    assert_same(expected, run(model, feeds))


@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_elements_along_an_axis(axis, reduction):
    scatter = node(
        "ScatterElements", "x i u", "y", axis=axis, reduction=reduction
    )
    shape = (2, 3) if axis == 0 else (4, 2)
    model = computed(scatter, {"x": (4, 3), "p": shape, "u": shape})
    indices = np.random.default_rng(7).integers(-3, 3, shape)
    feeds = {"x": X, "p": np.float32(indices), "u": updates(*shape)}
    expected = run(model, feeds)
    assert lower_computed_scatter(model) == 1
    assert_same(expected, run(model, feeds))


@pytest.mark.parametrize(
    "shapes",
    [
        {"x": (40, 3), "p": (33, 1), "u": (33, 3)},
        {"x": ("n", 3), "p": (2, 1), "u": (2, 3)},
        {"x": (4, 3), "p": ("n", 1), "u": ("n", 3)},
    ],
    ids=["too many", "x of unknown shape", "an unknown number"],
)
def test_where_it_does_not_apply(shapes):
    scatter = node("ScatterND", "x i u", "y")
    assert lower_computed_scatter(computed(scatter, shapes)) == 0


def test_elements_at_part_of_the_other_axis_stay():
    scatter = node("ScatterElements", "x i u", "y", axis=1)
    shapes = {"x": (4, 3), "p": (2, 1), "u": (2, 1)}
    assert lower_computed_scatter(computed(scatter, shapes)) == 0


def test_constant_indices_stay():
    model = graph_of(
        [node("ScatterND", "x i u", "y")],
        {"x": (4, 3), "u": (2, 3)},
        {"i": np.array([[3], [1]])},
    )
    assert lower_computed_scatter(model) == 0


def test_too_many_updates_are_refused_with_the_limit():
    scatter = node("ScatterND", "x i u", "y")
    shapes = {"x": (40, 3), "p": (33, 1), "u": (33, 3)}
    with pytest.raises(Unsupported, match="more than 32 updates at computed"):
        check(computed(scatter, shapes))


def test_a_place_written_twice_is_refused():
    model = graph_of(
        [node("ScatterND", "x i u", "y")],
        {"x": (4, 3), "u": (2, 3)},
        {"i": np.array([[1], [1]])},
        opset=20,
    )
    with pytest.raises(Unsupported, match="one place is written twice"):
        check(model)
