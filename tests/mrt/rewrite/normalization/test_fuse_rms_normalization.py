import numpy as np
import pytest

from mrt.rewrite.normalization.fuse_rms_normalization import (
    fuse_rms_normalization,
)
from tests.support.graphs import apply_pass, graph_of, node

SHAPE = (2, 5, 8)


def normalization(*last, axes=(2,), factor=1 / 8, epsilon=1e-5):
    """Nodes up to the root of the mean of squares, then `last`."""
    nodes = [
        node("Mul", "x x", "squares"),
        node("ReduceSum", "squares axes", "sums"),
        node("Mul", "sums count", "mean"),
        node("Add", "mean epsilon", "sum"),
        node("Sqrt", "sum", "root"),
        *last,
    ]
    weights = {
        "axes": np.array(axes),
        "count": factor,
        "epsilon": epsilon,
        "one": 1.0,
        "two": 2.0,
        "w": np.linspace(-1, 2, 8).astype(np.float32),
    }
    return graph_of(nodes, {"x": SHAPE}, weights)


DIVIDED = (node("Div", "x root", "y"),)
MULTIPLIED = (node("Div", "one root", "factor"), node("Mul", "x factor", "y"))
TURNED = (node("Div", "one root", "factor"), node("Mul", "factor x", "y"))


@pytest.mark.parametrize("last", [DIVIDED, MULTIPLIED, TURNED])
def test_a_root_mean_square_becomes_a_layer_normalization(last):
    model = normalization(*last)
    assert apply_pass(fuse_rms_normalization, model) == 1
    operators = {item.op_type for item in model.graph}
    assert operators == {"Neg", "Concat", "LayerNormalization", "Slice"}


@pytest.mark.parametrize(
    ("last", "options"),
    [
        (DIVIDED, {"axes": (1,), "factor": 1 / 5}),  # another axis
        (DIVIDED, {"factor": 1 / 7}),  # no mean
        (DIVIDED, {"factor": 1.0}),  # a norm
        (DIVIDED, {"epsilon": -1e-9}),
        ((node("Div", "two root", "f"), node("Mul", "x f", "y")), {}),
        ((node("Div", "root x", "y"),), {}),
        ((node("Mul", "x root", "y"),), {}),
        ((node("Div", "w root", "y"),), {}),  # another numerator
    ],
)
def test_what_is_none_stays(last, options):
    assert (
        apply_pass(fuse_rms_normalization, normalization(*last, **options)) == 0
    )
