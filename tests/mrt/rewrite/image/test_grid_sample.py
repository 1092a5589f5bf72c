"""lower_grid_sample: GridSample and AffineGrid as products and lookups that give what onnxruntime gives."""

import itertools
import sys

import numpy as np
import pytest

from mrt.rewrite import rewrite
from mrt.rewrite.image.grid_sample import lower_grid_sample
from mrt.rewrite.not_lowered import reason_not_lowered
from tests.support.graphs import (
    apply_pass,
    assert_same,
    graph_of,
    node,
    operators_of,
    run,
    seeded,
)

RNG = np.random.default_rng(2)
X = (2, 3, 5, 4)
GRID = RNG.uniform(-1.6, 1.6, (1, 4, 6, 2)).astype(np.float32)
TOLERANCE = 1e-5  # coordinates in float32
FORMS = list(
    itertools.product(
        ("linear", "nearest", "cubic"),
        ("zeros", "border", "reflection"),
        (0, 1),
    )
)


def sampled(mode, padding, corners):
    return [
        node(
            "GridSample",
            "x g",
            "y",
            mode=mode,
            padding_mode=padding,
            align_corners=corners,
        )
    ]


@pytest.mark.parametrize(("mode", "padding", "corners"), FORMS)
def test_a_constant_grid_is_a_product(mode, padding, corners):
    grid = np.repeat(GRID, 2, axis=0)
    model = graph_of(sampled(mode, padding, corners), {"x": X}, {"g": grid})
    assert apply_pass(lower_grid_sample, model, TOLERANCE) == 1
    assert operators_of(model) == ["Reshape", "MatMul", "Reshape"]


@pytest.mark.parametrize(("mode", "padding", "corners"), FORMS)
@pytest.mark.parametrize("channels", [1, 3])
def test_images_may_have_constant_grids_of_their_own(
    mode, padding, corners, channels
):
    grids = np.concatenate([GRID, GRID[:, ::-1] / 2])
    x = {"x": (2, channels, 5, 4)}
    model = graph_of(sampled(mode, padding, corners), x, {"g": grids})
    assert apply_pass(lower_grid_sample, model, TOLERANCE) == 1
    assert "GatherElements" not in operators_of(model)


def test_volumes_may_have_constant_grids_of_their_own():
    grids = RNG.uniform(-1.2, 1.2, (2, 2, 3, 4, 3)).astype(np.float32)
    model = graph_of(
        sampled("linear", "zeros", 0), {"x": (2, 2, 3, 5, 4)}, {"g": grids}
    )
    assert apply_pass(lower_grid_sample, model, TOLERANCE) == 1


@pytest.mark.parametrize("mode", ["linear", "nearest", "cubic"])
def test_a_large_constant_grid_is_lookups(mode, monkeypatch):
    monkeypatch.setattr(
        sys.modules["mrt.rewrite.image.grid_sample"], "MOST_PRODUCTS", 10
    )
    model = graph_of(
        sampled(mode, "zeros", 0), {"x": X}, {"g": np.repeat(GRID, 2, axis=0)}
    )
    assert apply_pass(lower_grid_sample, model, TOLERANCE) == 1
    assert (
        operators_of(model).count("Gather")
        == {"nearest": 1, "linear": 4, "cubic": 16}[mode]
    )


@pytest.mark.parametrize(
    ("mode", "padding", "corners"),
    [f for f in FORMS if f[0] != "cubic" and f[1] != "reflection"],
)
def test_a_computed_grid_is_lookups_of_what_is_next_to_a_place(
    mode, padding, corners
):
    model = graph_of(
        sampled(mode, padding, corners), {"x": X, "g": (2, 4, 6, 2)}
    )
    assert apply_pass(lower_grid_sample, model, TOLERANCE) == 1
    assert operators_of(model).count("GatherElements") == (
        4 if mode == "linear" else 1
    )


@pytest.mark.parametrize(
    "grid", [GRID[:, :, :3].repeat(2, -1)[..., :3][:, None], None]
)
def test_volumes(grid):
    inputs = {"x": (1, 2, 3, 5, 4)} | (
        {"g": (1, 2, 3, 4, 3)} if grid is None else {}
    )
    model = graph_of(
        sampled("linear", "zeros", 0),
        inputs,
        {} if grid is None else {"g": grid},
    )
    assert apply_pass(lower_grid_sample, model, TOLERANCE) == 1


@pytest.mark.parametrize(
    ("mode", "padding"), [("cubic", "zeros"), ("linear", "reflection")]
)
def test_other_computed_grids_stay(mode, padding):
    model = graph_of(sampled(mode, padding, 0), {"x": X, "g": (2, 4, 6, 2)})
    assert lower_grid_sample(model) == 0
    (remaining,) = model.graph
    reason = reason_not_lowered(remaining)
    assert (
        f" {mode if mode == 'cubic' else padding} takes a constant grid"
        in reason
    )
    assert "--outputs" in reason


@pytest.mark.parametrize("size", [[2, 3, 5, 4], [2, 3, 2, 5, 3]])
@pytest.mark.parametrize("corners", [0, 1])
def test_a_grid_of_places_turned_and_moved(size, corners):
    rank = len(size) - 2
    made = [node("AffineGrid", "x size", "y", align_corners=corners)]
    model = graph_of(made, {"x": (2, rank, rank + 1)}, {"size": np.array(size)})
    assert apply_pass(lower_grid_sample, model, TOLERANCE) == 1
    assert operators_of(model) == ["Transpose", "MatMul", "Reshape"]


def test_the_only_place_of_an_axis_has_no_corner():
    made = [node("AffineGrid", "x size", "y", align_corners=1)]
    assert (
        lower_grid_sample(
            graph_of(made, {"x": (2, 2, 3)}, {"size": np.array([2, 3, 1, 4])})
        )
        == 0
    )


def test_a_spatial_transformer():
    nodes = [
        node("AffineGrid", "t size", "g"),
        node("GridSample", "x g", "y", align_corners=0),
    ]
    model = graph_of(
        nodes, {"x": X, "t": (2, 2, 3)}, {"size": np.array([2, 3, 5, 4])}
    )
    feeds = seeded({"x": X, "t": (2, 2, 3)})
    expected = run(model, feeds)
    rewrite(model)
    assert_same(expected, run(model, feeds), TOLERANCE)
