"""fuse_normalization: the ways exporters spell a normalisation out, and what only looks like one."""

import numpy as np
import pytest

from mrt.rewrite import rewrite
from mrt.rewrite.normalization.fuse_normalization import fuse_normalization
from tests.support.graphs import (
    apply_pass,
    graph_of,
    node,
    operators_of,
    run,
    seeded,
    shapes_of,
)

SHAPE = {"x": (2, 7, 16)}
MEAN = [
    node("ReduceSum", "x a", "s"),
    node("Mul", "s n", "m"),
    node("Sub", "x m", "d"),
]
VARIANCE = [
    node("Mul", "d d", "q"),
    node("ReduceSum", "q a", "t"),
    node("Mul", "t n", "v"),
]
ROOT = [
    node("Add", "v e", "u"),
    node("Sqrt", "u", "r"),
    node("Div", "d r", "y"),
]
CONSTANTS = {"a": np.array([2]), "n": 1 / 16, "e": 1e-5}


def test_means_differences_and_a_root_are_a_layer_norm():
    model = graph_of([*MEAN, *VARIANCE, *ROOT], SHAPE, CONSTANTS)
    assert apply_pass(fuse_normalization, model) == 1
    assert operators_of(model) == ["LayerNormalization"]
    assert model.graph[0].attributes["epsilon"].as_float() == np.float32(1e-5)


def test_over_an_image_they_are_an_instance_norm():
    constants = {"a": np.array([2, 3]), "n": 1 / 20, "e": 1e-5}
    model = graph_of([*MEAN, *VARIANCE, *ROOT], {"x": (2, 3, 4, 5)}, constants)
    assert apply_pass(fuse_normalization, model) == 1
    assert operators_of(model) == ["InstanceNormalization"]


def test_over_another_axis_it_is_turned():
    constants = {"a": np.array([1]), "n": 1 / 7, "e": 1e-5}
    model = graph_of([*MEAN, *VARIANCE, *ROOT], SHAPE, constants)
    assert apply_pass(fuse_normalization, model) == 1
    assert operators_of(model) == [
        "Transpose",
        "LayerNormalization",
        "Transpose",
    ]


def test_the_difference_may_be_computed_twice_and_epsilon_left_out():
    nodes = [
        *MEAN,
        node("Sub", "x m", "d2"),
        *VARIANCE,
        node("Sqrt", "v", "r"),
        node("Div", "d2 r", "y"),
    ]
    assert (
        apply_pass(fuse_normalization, graph_of(nodes, SHAPE, CONSTANTS)) == 1
    )


def test_a_variance_over_one_less_is_another_factor():
    variance = [
        node("Mul", "d d", "q"),
        node("ReduceSum", "q a", "t"),
        node("Mul", "t k", "v"),
    ]
    model = graph_of(
        [*MEAN, *variance, *ROOT], SHAPE, {**CONSTANTS, "k": 1 / 15, "e": 0.5}
    )
    assert apply_pass(fuse_normalization, model) == 1
    assert operators_of(model) == ["LayerNormalization", "Mul"]


def test_the_mean_of_squares_less_the_square_of_the_mean_held_above_0():
    variance = [
        node("Mul", "x x", "q"), node("ReduceSum", "q a", "t"), node("Mul", "t n", "w"), node("Mul", "m m", "o"),
        node("Sub", "w o", "z"), node("Relu", "z", "v"),
    ]  # fmt: skip
    model = graph_of([*MEAN, *variance, *ROOT], SHAPE, CONSTANTS)
    assert apply_pass(fuse_normalization, model) == 1
    assert operators_of(model) == ["LayerNormalization"]


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"n": 1 / 8}, "twice the mean is taken off"),
        (
            {"a": np.array([0])},
            "the means are over other entries than the factor says",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_is_no_mean_stays(change, reason):
    assert (
        fuse_normalization(
            graph_of([*MEAN, *VARIANCE, *ROOT], SHAPE, CONSTANTS | change)
        )
        == 0
    ), reason


def test_another_numerator_stays():
    nodes = [
        *MEAN,
        *VARIANCE,
        node("Add", "v e", "u"),
        node("Sqrt", "u", "r"),
        node("Div", "x r", "y"),
    ]
    assert fuse_normalization(graph_of(nodes, SHAPE, CONSTANTS)) == 0


def test_a_root_without_a_mean_taken_off_stays():
    nodes = [
        node("Mul", "x x", "q"),
        node("ReduceSum", "q a", "t"),
        node("Sqrt", "t", "r"),
        node("Div", "x r", "y"),
    ]
    assert fuse_normalization(graph_of(nodes, SHAPE, CONSTANTS)) == 0


def test_a_softmax_in_exponentials():
    nodes = [node("ReduceMax", "x a", "m"), node("Sub", "x m", "d"), node("Exp", "d", "p"),
             node("ReduceSum", "p a", "t"), node("Div", "p t", "y")]  # fmt: skip
    model = graph_of(nodes, SHAPE, {"a": np.array([1])})
    assert apply_pass(fuse_normalization, model) == 1
    assert operators_of(model) == ["Softmax"]


def test_exponentials_over_the_sum_of_others_stay():
    nodes = [
        node("Exp", "x", "p"),
        node("Exp", "z", "o"),
        node("ReduceSum", "o a", "t"),
        node("Div", "p t", "y"),
    ]
    assert (
        fuse_normalization(
            graph_of(nodes, {**SHAPE, "z": (2, 7, 16)}, {"a": np.array([1])})
        )
        == 0
    )


PYTORCH = [
    node("ReduceMean", "x a", "m"), node("Sub", "x m", "d"), node("Pow", "d two", "q"), node("ReduceMean", "q a", "v"),
    node("Add", "v e", "u"), node("Sqrt", "u", "r"), node("Div", "d r", "z"), node("Mul", "z g", "w"), node("Add", "w b", "y"),
]  # fmt: skip
FLAX = [
    node("ReduceSum", "x a", "s", keepdims=0), node("Mul", "s n", "m"), node("Mul", "x x", "xx"),
    node("ReduceSum", "xx a", "t", keepdims=0), node("Mul", "t n", "w"), node("Mul", "m m", "mm"), node("Sub", "w mm", "v0"),
    node("Max", "zero v0", "v"), node("Reshape", "v rows", "v3"), node("Expand", "v3 rows", "v4"), node("Add", "v4 e", "u"),
    node("Sqrt", "u", "r"), node("Reciprocal", "r", "i"), node("Mul", "i g", "ig"), node("Reshape", "m rows", "m3"),
    node("Sub", "x m3", "d"), node("Mul", "d ig", "z"), node("Add", "z b", "y"),
]  # fmt: skip


@pytest.mark.parametrize(
    "nodes", [PYTORCH, FLAX], ids=["as PyTorch writes it", "as Flax writes it"]
)
def test_a_whole_rewrite_leaves_one_operator(nodes):
    rng = np.random.default_rng(0)
    constants = {"a": np.array([-1]), "two": 2.0, "e": 1e-6, "n": 1 / 16, "zero": 0.0, "rows": np.array([2, 7, 1]),
                 "g": rng.normal(size=16).astype(np.float32), "b": rng.normal(size=16).astype(np.float32)}  # fmt: skip
    model = graph_of(nodes, SHAPE, constants)
    feeds = seeded(shapes_of(model))
    before = run(model, feeds)["y"]
    rewrite(model)
    assert operators_of(model) == ["LayerNormalization"]
    assert np.abs(run(model, feeds)["y"] - before).max() < 1e-5


def test_means_without_an_axis_of_their_own_are_rows_too():
    nodes = [
        node("ReduceSum", "x a", "s", keepdims=0),
        *MEAN[1:],
        VARIANCE[0],
        node("ReduceSum", "q a", "t", keepdims=0),
        *VARIANCE[2:],
        *ROOT,
    ]
    constants = {"a": np.array([0]), "n": 1 / 7, "e": 1e-5}
    model = graph_of(nodes, {"x": (7, 16)}, constants)
    assert apply_pass(fuse_normalization, model) == 1
    assert operators_of(model) == [
        "Transpose",
        "LayerNormalization",
        "Transpose",
    ]


def test_a_number_taken_off_the_variance_is_no_epsilon():
    model = graph_of([*MEAN, *VARIANCE, *ROOT], SHAPE, CONSTANTS | {"e": -0.25})
    assert fuse_normalization(model) == 0


def test_squares_less_the_square_of_another_mean_stay():
    variance = [
        node("ReduceSum", "z a", "zs"), node("Mul", "zs n", "zm"), node("Mul", "x x", "q"), node("ReduceSum", "q a", "t"),
        node("Mul", "t n", "w"), node("Mul", "zm zm", "o"), node("Sub", "w o", "v"),
    ]  # fmt: skip
    shapes = {**SHAPE, "z": SHAPE["x"]}
    model = graph_of([*MEAN, *variance, *ROOT], shapes, CONSTANTS)
    assert fuse_normalization(model) == 0


def test_a_product_of_two_differences_is_no_square():
    """The variance is that of the value itself: d * f, with another f, is none."""
    other = [
        node("Mul", "d f", "q") if item.output[0] == "q" else item
        for item in VARIANCE
    ]
    lead = [node("Exp", "d", "f")]
    model = graph_of([*MEAN, *lead, *other, *ROOT], SHAPE, CONSTANTS)
    assert fuse_normalization(model) == 0
