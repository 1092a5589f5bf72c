"""keep_file_grids: one rounding is enough for the model to have the function that rounds."""

import numpy as np

from mrt.graph.notes import IntegerGrid, set_grid
from mrt.rewrite.file_grids import has_file_grids, keep_file_grids
from tests.support.graphs import graph_of, node, operators_of, run


def test_a_single_grid_becomes_a_rounding_that_runs():
    model = graph_of([node("Identity", "x", "y")], {"x": (5,)})
    assert keep_file_grids(model) == 0
    assert not has_file_grids(model)
    set_grid(model.graph[0].outputs[0], IntegerGrid(0.5, 1, -3, 3))
    assert keep_file_grids(model) == 1
    assert operators_of(model) == ["FakeQuantize"]
    assert has_file_grids(model)
    x = np.float32([-9, -0.6, 0.2, 0.3, 9])
    # integers round(x / 0.5) + 1 in -3..3: -3, 0, 1, 2, 3
    assert run(model, {"x": x})["y"].tolist() == [-2, -0.5, 0, 0.5, 1]
