"""What no layer's own noise shows: a scale that uneven parts share, and rows whose order is that of scores."""

import numpy as np
import pytest

from mrt.calibrate.collect import calibrate
from mrt.calibrate.samples import synthetic_samples
from mrt.quantize import QuantizeOptions
from mrt.quantize.hidden_causes import hidden_causes
from mrt.table.table import CalibrationOptions
from tests.support.graphs import graph_of, node

SHAPES = {"x": (5, 4)}


def causes(nodes, constants):
    used = {name for one in nodes for name in one.input}
    weights = {name: constants[name] for name in constants if name in used}
    model = graph_of(nodes, SHAPES, weights)
    samples = synthetic_samples(SHAPES, 20, 0)
    table = calibrate(
        model, samples, CalibrationOptions(), model_sha256="0" * 64
    )
    return hidden_causes(model, table, QuantizeOptions())


def joined(factor):
    """A product of numbers beside others of another size."""
    nodes = [
        node("Mul", "x factor", "boxes"),
        node("Sigmoid", "x", "scores"),
        node("Concat", "boxes scores", "both", axis=1),
        node("MatMul", "both w", "y"),
    ]
    constants = {"factor": np.float32(factor), "w": np.ones((8, 3), np.float32)}
    return causes(nodes, constants)


def test_parts_of_very_different_sizes_in_one_scale_are_named():
    (found,) = joined(640.0)
    assert found.startswith("'both' has one scale for numbers up to ")
    assert "leaves little of its part 'scores', up to 0." in found
    assert not joined(4.0)


@pytest.mark.parametrize("fill", [1e9, 3.0])
@pytest.mark.parametrize("operator", ["ReduceSum", "ReduceMin"])
def test_a_fill_that_takes_the_scale_is_named(fill, operator):
    """A minimum never takes what is filled with a great number, so that no scale is for it there."""
    nodes = [
        node("Greater", "x least", "is_kept"),
        node("Where", "is_kept x fill", "filled"),
        node(operator, "filled axes", "y", keepdims=1),
    ]
    constants = {
        "least": np.float32(-1),
        "fill": np.float32(fill),
        "axes": np.array([1]),
    }
    takes_scale = fill > 100 and operator == "ReduceSum"
    assert [
        "its part 'x'" in sentence for sentence in causes(nodes, constants)
    ] == [True] * takes_scale


RANKED = [
    node("Abs", "x", "boxes"),
    node("Neg", "x", "scores"),
    node("ReduceMax", "scores axes", "best", keepdims=0),
    node("TopK", "best k", "top places", axis=0),
    node("Gather", "boxes places", "rows", axis=0),
]
CONSTANTS = {
    "axes": np.array([1]),
    "k": np.array([3]),
    "w": np.ones((4, 3), np.float32),
}


def test_rows_in_the_order_of_their_scores_are_named():
    (found,) = causes([*RANKED, node("Relu", "rows", "y")], CONSTANTS)
    assert "--outputs boxes,best compares them" in found


def test_rows_that_are_looked_up_with_their_scores_are_named_alone():
    last = [
        node("Gather", "scores places", "kept", axis=0),
        node("Concat", "rows kept", "y", axis=1),
    ]
    (found,) = causes([*RANKED, *last], CONSTANTS)
    assert "--outputs boxes,scores compares them" in found


def test_rows_that_a_layer_reads_have_no_order():
    assert not causes([*RANKED, node("MatMul", "rows w", "y")], CONSTANTS)
