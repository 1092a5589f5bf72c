"""fuse_normalization_affine: what a scale and a shift take up, and what not."""

import numpy as np
import pytest

from mrt.rewrite.normalization.fuse_normalization_affine import (
    fuse_normalization_affine,
)
from tests.support.graphs import (
    apply_pass,
    constant_named,
    graph_of,
    node,
    operators_of,
)

LAYER = node("LayerNormalization", "x s b", "n", axis=2)
INSTANCE = node("InstanceNormalization", "x s b", "n")
ROWS = {"x": (2, 3, 4)}
FOUR = {"s": [1.0, 2.0, 3.0, 4.0], "b": [0.5, 0.0, 0.0, -1.0]}


def test_a_product_and_a_sum_go_into_scale_and_shift():
    nodes = [LAYER, node("Mul", "n k", "m"), node("Add", "m c", "y")]
    model = graph_of(
        nodes, ROWS, {**FOUR, "k": [2.0, -1.0, 1.0, 0.5], "c": 1.0}
    )
    assert apply_pass(fuse_normalization_affine, model) == 2
    assert operators_of(model) == ["LayerNormalization"]
    assert constant_named(model, "y.scale").tolist() == [2, -2, 3, 2]
    assert constant_named(model, "y.shift").tolist() == [2, 1, 1, 0.5]


def test_an_instance_norm_takes_numbers_of_channels():
    nodes = [INSTANCE, node("Mul", "n k", "y")]
    model = graph_of(
        nodes,
        {"x": (2, 4, 5, 6)},
        {**FOUR, "k": np.ones((4, 1, 1), np.float32) * 3},
    )
    assert apply_pass(fuse_normalization_affine, model) == 1
    assert constant_named(model, "y.shift").tolist() == [1.5, 0, 0, -3]


@pytest.mark.parametrize(
    "constant",
    [np.full((3, 1), 2, np.float32), np.full((5, 1, 1, 1), 2, np.float32)],
    ids=["a number for each row", "more dimensions"],
)
def test_numbers_that_vary_elsewhere_stay(constant):
    assert (
        fuse_normalization_affine(
            graph_of(
                [LAYER, node("Mul", "n k", "y")], ROWS, {**FOUR, "k": constant}
            )
        )
        == 0
    )


def test_a_normalisation_that_is_read_twice_stays():
    nodes = [LAYER, node("Mul", "n k", "m"), node("Add", "m n", "y")]
    assert (
        fuse_normalization_affine(graph_of(nodes, ROWS, {**FOUR, "k": 2.0}))
        == 0
    )


@pytest.mark.parametrize("computed", ["s", "b"])
def test_a_normalisation_of_computed_numbers_stays(computed):
    known = {name: FOUR[name] for name in FOUR if name != computed}
    model = graph_of(
        [LAYER, node("Mul", "n k", "y")],
        {**ROWS, computed: (4,)},
        {**known, "k": 2.0},
    )
    assert fuse_normalization_affine(model) == 0


def test_a_product_with_another_maker_does_not_end_the_pass():
    nodes = [
        node("Mul", "x c", "z"),
        node("LayerNormalization", "z s b", "n", axis=2),
        node("Mul", "n k", "y"),
    ]
    model = graph_of(nodes, ROWS, {**FOUR, "k": [2.0, 1.0, 1.0, 0.5], "c": 3.0})
    assert apply_pass(fuse_normalization_affine, model) == 1


def test_without_an_axis_the_last_one_is_normalized():
    nodes = [
        node("LayerNormalization", "x s b", "n"),
        node("Mul", "n k", "y"),
    ]
    model = graph_of(nodes, ROWS, {**FOUR, "k": [2.0, 1.0, 1.0, 0.5]})
    assert apply_pass(fuse_normalization_affine, model) == 1
    assert constant_named(model, "y.scale").tolist() == [2, 2, 3, 2]


def test_a_norm_with_a_computed_scale_does_not_end_the_pass():
    nodes = [
        node("ReduceSum", "x a", "t", keepdims=0),
        node("LayerNormalization", "x t b", "m", axis=2),
        node("Mul", "m k", "z"),
        node("LayerNormalization", "z s b", "n", axis=2),
        node("Mul", "n k", "y"),
    ]
    constants = {**FOUR, "k": [2.0, 1.0, 1.0, 0.5], "a": np.array([0, 1])}
    model = graph_of(nodes, ROWS, constants)
    assert apply_pass(fuse_normalization_affine, model, 1e-4) == 1
