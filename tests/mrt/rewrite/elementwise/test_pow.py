"""lower_pow: before and after on the smallest graphs, and where it must not apply."""

import numpy as np
import onnx
import pytest

from mrt.rewrite.elementwise.pow import lower_pow
from tests.support.graphs import apply_pass, graph_of, node, operators_of, run


def test_each_exponent_is_a_power_of_its_own():
    model = graph_of(
        [node("Pow", "x e", "y")], {"x": (2, 3)}, {"e": [2.0, 3.0, 2.0]}
    )
    assert apply_pass(lower_pow, model) == 1
    assert operators_of(model) == ["Pow", "Pow", "Where"]


def test_equal_exponents_give_their_shape():
    model = graph_of(
        [node("Pow", "x e", "y")], {"x": (1,)}, {"e": np.array([2, 2, 2])}
    )
    assert apply_pass(lower_pow, model) == 1
    assert run(model, {"x": np.float32([3])})["y"].tolist() == [9, 9, 9]


def test_powers_of_integers_are_products():
    model = graph_of(
        [node("Pow", "x e", "y")],
        {"x": (4,)},
        {"e": np.array([0, 1, 2, 5])},
        kind=onnx.TensorProto.INT64,
    )
    assert lower_pow(model) == 1
    assert "Pow" not in operators_of(model)
    assert run(model, {"x": np.array([7, 7, -7, -3])})["y"].tolist() == [
        1,
        7,
        49,
        -243,
    ]


@pytest.mark.parametrize(
    ("exponents", "kind"),
    [([0.3], 1), (np.array([-1, 2]), 7), (np.arange(17), 7)],
    ids=str,
)
def test_one_exponent_and_fractions_and_many_powers_of_integers_stay(
    exponents, kind
):
    shape = {"x": (len(exponents),)}
    assert (
        lower_pow(
            graph_of(
                [node("Pow", "x e", "y")], shape, {"e": exponents}, kind=kind
            )
        )
        == 0
    )


def test_computed_and_many_exponents_are_exponentials():
    feeds = {"x": np.float32([2, 3, 0.5]), "e": np.float32([3, -1, 2])}
    model = graph_of([node("Pow", "x e", "y")], {"x": (3,), "e": (3,)})
    assert lower_pow(model) == 1
    assert operators_of(model) == ["Log", "Mul", "Exp"]
    assert run(model, feeds)["y"] == pytest.approx([8, 1 / 3, 0.25], rel=1e-6)
    many = graph_of(
        [node("Pow", "x e", "y")],
        {"x": (17,)},
        {"e": np.arange(17, dtype=np.float32) / 8},
    )
    assert lower_pow(many) == 1
    assert operators_of(many) == ["Log", "Mul", "Exp"]


def test_powers_of_several_constants_are_exponentials():
    model = graph_of(
        [node("Pow", "b x", "y")], {"x": (3,)}, {"b": [2.0, 3.0, 0.5]}
    )
    assert apply_pass(lower_pow, model, 1e-5) == 1


@pytest.mark.parametrize("base", [2.0, [2.0, -3.0, 1.0]], ids=str)
def test_one_base_and_bases_below_zero_stay(base):
    assert (
        lower_pow(graph_of([node("Pow", "b x", "y")], {"x": (3,)}, {"b": base}))
        == 0
    )


def test_a_power_above_0_of_nothing_is_nothing():
    """Its logarithm is infinite, and was refused on samples that have a 0."""
    exponents = np.arange(1, 18, dtype=np.float32) / 8
    model = graph_of([node("Pow", "x e", "y")], {"x": (17,)}, {"e": exponents})
    assert lower_pow(model) == 1
    x = np.where(np.arange(17) % 2, 2, 0).astype(np.float32)
    found = run(model, {"x": x})["y"]
    assert found == pytest.approx(x**exponents, rel=1e-6)
    assert operators_of(model) == [
        "Equal",
        "Where",
        "Log",
        "Mul",
        "Exp",
        "Where",
    ]
