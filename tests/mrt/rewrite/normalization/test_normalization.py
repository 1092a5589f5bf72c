"""canonicalize_normalization: before and after on the smallest graphs, and where it must not apply."""

import numpy as np
import pytest

from mrt.rewrite.normalization.normalization import canonicalize_normalization
from tests.support.graphs import (
    apply_pass,
    constant_named,
    graph_of,
    node,
    operators_of,
)

SHAPE = {"x": (2, 3, 4, 5)}


def test_a_layer_norm_gets_its_axis_from_the_front_and_full_scale_and_shift():
    model = graph_of(
        [node("LayerNormalization", "x g", "y", axis=-2)],
        SHAPE,
        {"g": [1.0, 2.0, 3.0, 4.0, 5.0]},
    )
    assert apply_pass(canonicalize_normalization, model) == 1
    assert model.graph[0].attributes["axis"].as_int() == 2
    assert constant_named(model, "y.scale").tolist() == [[1, 2, 3, 4, 5]] * 4
    assert not constant_named(model, "y.shift").any()
    assert apply_pass(canonicalize_normalization, model) == 0


def test_a_computed_scale_and_shift_stand_behind():
    model = graph_of(
        [node("LayerNormalization", "x g b", "y")],
        {**SHAPE, "g": (5,), "b": (5,)},
    )
    assert apply_pass(canonicalize_normalization, model) == 1
    assert operators_of(model) == ["LayerNormalization", "Mul", "Add"]


def test_the_mean_and_deviation_of_a_layer_norm_are_computed_beside_it():
    nodes = [
        node("LayerNormalization", "x g", "a m d"),
        node("Mul", "a m", "b"),
        node("Mul", "b d", "y"),
    ]
    model = graph_of(nodes, SHAPE, {"g": [1.0] * 5})
    assert apply_pass(canonicalize_normalization, model, 1e-5) > 0
    norm = next(
        entry for entry in model.graph if entry.op_type == "LayerNormalization"
    )
    assert not any(output.uses() for output in norm.outputs[1:])


def test_an_instance_norm_only_gets_its_epsilon():
    model = graph_of(
        [node("InstanceNormalization", "x g b", "y")],
        SHAPE,
        {"g": [1.0] * 3, "b": [2.0] * 3},
    )
    assert apply_pass(canonicalize_normalization, model) == 1
    assert model.graph[0].attributes["epsilon"].as_float() == np.float32(1e-5)
    assert apply_pass(canonicalize_normalization, model) == 0


def test_an_instance_norm_by_computed_numbers_is_a_product_and_a_sum():
    model = graph_of(
        [node("InstanceNormalization", "x g b", "y")],
        {**SHAPE, "g": (3,), "b": (3,)},
    )
    assert apply_pass(canonicalize_normalization, model) == 1
    assert operators_of(model) == [
        "Reshape",
        "Reshape",
        "InstanceNormalization",
        "Mul",
        "Add",
    ]


@pytest.mark.parametrize(
    ("shape", "axes", "operators"),
    [
        (
            (2, 3, 4, 5),
            [0, 2, 3],
            ["Transpose", "LayerNormalization", "Transpose"],
        ),
        ((1, 3, 4, 5), [0, 2, 3], ["InstanceNormalization"]),
        ((2, 3, 4, 5), [-1], ["LayerNormalization"]),
        ((2, 3, 4, 5), [1], ["Transpose", "LayerNormalization", "Transpose"]),
    ],
)
def test_mean_variance_normalisation_over_any_axes(shape, axes, operators):
    model = graph_of(
        [node("MeanVarianceNormalization", "x", "y", axes=axes)], {"x": shape}
    )
    assert apply_pass(canonicalize_normalization, model) == 1
    assert operators_of(model) == operators


@pytest.mark.parametrize(
    ("p", "operators"),
    [
        (1, ["Abs", "ReduceSum", "Add", "Div"]),
        (2, ["Mul", "ReduceSum", "Add", "Sqrt", "Div"]),
    ],
)
def test_a_norm_is_a_quotient(p, operators):
    model = graph_of([node("LpNormalization", "x", "y", axis=1, p=p)], SHAPE)
    assert apply_pass(canonicalize_normalization, model) == 1
    assert operators_of(model) == operators
