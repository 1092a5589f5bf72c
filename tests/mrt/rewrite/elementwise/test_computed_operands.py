"""lower_computed_operands: before and after on the smallest graphs, and where it must not apply."""

import numpy as np
import pytest

from mrt.rewrite.elementwise.computed_operands import lower_computed_operands
from tests.support.graphs import apply_pass, graph_of, node, operators_of, run

IMAGE = {"x": (1, 2, 4, 3)}
NUMBERS = {"g": [1.0, 2.0], "b": [0.5, -1.0], "m": [0.1, 0.2], "v": [1.0, 4.0]}


def test_computed_limits_hold_and_of_crossed_ones_the_upper():
    model = graph_of(
        [node("Clip", "x l h", "y")], {"x": (3,), "l": (), "h": ()}, opset=20
    )
    assert apply_pass(lower_computed_operands, model, 0) == 1
    assert operators_of(model) == ["Max", "Min"]
    found = run(
        model,
        {
            "x": np.float32([-5, 0, 5]),
            "l": np.array(2, np.float32),
            "h": np.array(1, np.float32),
        },
    )
    assert found["y"].tolist() == [1, 1, 1]


def test_one_limit_alone():
    model = graph_of(
        [node("Clip", "x - h", "y")], {"x": (3,), "h": ()}, opset=20
    )
    assert apply_pass(lower_computed_operands, model, 0) == 1
    assert operators_of(model) == ["Min"]


def test_a_computed_slope():
    model = graph_of([node("PRelu", "x s", "y")], {**IMAGE, "s": (2, 1, 1)})
    assert apply_pass(lower_computed_operands, model) == 1


@pytest.mark.parametrize(
    ("operator", "shape"),
    [("Conv", (5, 2, 2, 2)), ("ConvTranspose", (2, 5, 2, 2))],
)
def test_a_computed_bias_is_added_behind(operator, shape):
    weights = np.random.default_rng(0).normal(size=shape).astype(np.float32)
    layer = node(operator, "x w b", "y", strides=[2, 1], pads=[1, 0, 0, 1])
    model = graph_of([layer], {**IMAGE, "b": (5,)}, {"w": weights})
    assert apply_pass(lower_computed_operands, model, 1e-5) == 1
    assert operators_of(model) == [operator, "Reshape", "Add"]


@pytest.mark.parametrize(
    ("image", "weights", "attributes"),
    [
        (
            (2, 4, 5, 6),
            (6, 2, 3, 2),
            {"group": 2, "pads": [1, 0, 1, 1], "strides": [2, 1]},
        ),
        ((1, 3, 9), (2, 3, 3), {"dilations": [2]}),
        ((1, 2, 6, 6), (2, 2, 3, 3), {"auto_pad": "SAME_UPPER"}),
    ],
)
def test_computed_weights_are_multiplied_with_every_window(
    image, weights, attributes
):
    model = graph_of(
        [node("Conv", "x w b", "y", **attributes)],
        {"x": image, "w": weights, "b": weights[:1]},
    )
    assert apply_pass(lower_computed_operands, model, 1e-5) == 1
    assert apply_pass(lower_computed_operands, model, 1e-5) == 1
    assert operators_of(model) == [
        "Conv",
        "Reshape",
        "Reshape",
        "MatMul",
        "Reshape",
        "Reshape",
        "Add",
    ]


@pytest.mark.parametrize("computed", ["g", "b", "m"])
def test_a_normalisation_by_computed_numbers(computed):
    known = {name: value for name, value in NUMBERS.items() if name != computed}
    model = graph_of(
        [node("BatchNormalization", "x g b m v", "y")],
        {**IMAGE, computed: (2,)},
        known,
        opset=15,
    )
    assert apply_pass(lower_computed_operands, model, 1e-5) == 1
    assert "BatchNormalization" not in operators_of(model)


def test_constants_stay():
    nodes = [
        node("Clip", "x l h", "a"),
        node("PRelu", "a s", "b"),
        node("Conv", "b w c", "y"),
    ]
    weights = {
        "l": 0.0,
        "h": 1.0,
        "s": [0.1],
        "w": np.ones((1, 2, 1, 1), np.float32),
        "c": [1.0],
    }
    assert lower_computed_operands(graph_of(nodes, IMAGE, weights)) == 0
