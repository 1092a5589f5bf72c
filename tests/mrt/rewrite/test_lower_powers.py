"""lower_powers: before and after on the smallest graphs, and where it must not apply."""

import numpy as np
import onnx
import pytest

from mrt.rewrite.lower_powers import lower_powers
from tests.graphs import apply_pass, graph_of, node, operators_of, run


def test_each_exponent_is_a_power_of_its_own():
    model = graph_of([node("Pow", "x e", "y")], {"x": (2, 3)}, {"e": [2.0, 3.0, 2.0]})
    assert apply_pass(lower_powers, model) == 1
    assert operators_of(model) == ["Pow", "Pow", "Where"]


def test_equal_exponents_give_their_shape():
    model = graph_of([node("Pow", "x e", "y")], {"x": (1,)}, {"e": np.array([2, 2, 2])})
    assert apply_pass(lower_powers, model) == 1
    assert run(model, {"x": np.float32([3])})["y"].tolist() == [9, 9, 9]


def test_powers_of_whole_numbers_are_products():
    model = graph_of([node("Pow", "x e", "y")], {"x": (4,)}, {"e": np.array([0, 1, 2, 5])}, kind=onnx.TensorProto.INT64)
    assert lower_powers(model) == 1
    assert "Pow" not in operators_of(model)
    assert run(model, {"x": np.array([7, 7, -7, -3])})["y"].tolist() == [1, 7, 49, -243]


@pytest.mark.parametrize(
    ("exponents", "kind"), [([0.3], 1), (np.array([-1, 2]), 7), (np.arange(17, dtype=np.float32), 1)], ids=str
)
def test_one_exponent_and_fractions_of_whole_numbers_and_many_exponents_stay(exponents, kind):
    shape = {"x": (len(exponents),)}
    assert lower_powers(graph_of([node("Pow", "x e", "y")], shape, {"e": exponents}, kind=kind)) == 0
