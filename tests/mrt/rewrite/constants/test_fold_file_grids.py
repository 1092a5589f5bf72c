"""fold_file_grids: constants that the model's file rounds are rounded once, as onnxruntime rounds them."""

import numpy as np

from mrt.graph.notes import IntegerGrid, set_grid
from mrt.rewrite.constants.fold_file_grids import fold_file_grids
from mrt.rewrite.file_grids import has_file_grids, keep_file_grids
from tests.support.graphs import constant_named, graph_of, node, run

NUMBERS = np.float32([-90.0, -0.75, -0.25, 0.25, 0.75, 0.3, 90.0])


def rounded(first_operand):
    nodes = [node("Identity", first_operand, "r"), node("Add", "x r", "y")]
    model = graph_of(nodes, {"x": NUMBERS.shape}, {"a": NUMBERS})
    set_grid(model.graph[0].outputs[0], IntegerGrid(0.5, 3, -5, 20))
    assert keep_file_grids(model) == 1
    return model


def test_a_rounded_constant_is_a_constant():
    model = rounded("a")
    feeds = {"x": np.zeros_like(NUMBERS)}
    expected = run(model, feeds)["y"]
    # integers round(x / 0.5) + 3 in -5..20, ties to even: -5, 1, 3, 3, 5, 4, 20
    assert expected.tolist() == [-4.0, -1.0, 0.0, 0.0, 1.0, 0.5, 8.5]
    assert fold_file_grids(model) == 1
    assert not has_file_grids(model)
    assert constant_named(model, "r").tolist() == expected.tolist()


def test_a_rounded_value_stays():
    model = rounded("x")
    assert fold_file_grids(model) == 0
    assert has_file_grids(model)
