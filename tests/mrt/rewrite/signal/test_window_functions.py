"""fold_window_functions: before and after on the smallest graphs, and where it must not apply."""

import numpy as np
import pytest

from mrt.rewrite.signal.window_functions import fold_window_functions
from tests.support.graphs import (
    apply_pass,
    constant_named,
    graph_of,
    node,
    operators_of,
)


@pytest.mark.parametrize("periodic", [0, 1])
@pytest.mark.parametrize(
    "operator", ["HannWindow", "HammingWindow", "BlackmanWindow"]
)
def test_a_window_becomes_a_constant(operator, periodic):
    nodes = [
        node(operator, "n", "w", periodic=periodic),
        node("Mul", "x w", "y"),
    ]
    model = graph_of(nodes, {"x": (10,)}, {"n": np.array(10)})
    assert apply_pass(fold_window_functions, model, 1e-6) == 1
    assert operators_of(model) == ["Mul"]


def test_a_window_of_hann_by_hand():
    nodes = [node("HannWindow", "n", "w"), node("Mul", "x w", "y")]
    model = graph_of(nodes, {"x": (4,)}, {"n": np.array(4)})
    fold_window_functions(model)
    assert constant_named(model, "w").tolist() == [0, 0.5, 1, 0.5]


def test_a_window_that_is_an_output_is_held_by_a_reshape():
    model = graph_of(
        [node("HannWindow", "n", "y"), node("Relu", "x", "z")],
        {"x": (4,)},
        {"n": np.array(4)},
        outputs="y z",
    )
    assert apply_pass(fold_window_functions, model, 1e-6) == 1
    assert operators_of(model) == ["Reshape", "Relu"]


@pytest.mark.parametrize("bins", [8, 40])
def test_the_filters_of_a_mel_spectrum_become_a_constant(bins):
    """40 filters are more than frequencies: many begin or end where they are highest."""
    names = {
        "b": np.array(bins),
        "n": np.array(64),
        "r": np.array(8000),
        "l": np.float32(20),
        "h": np.float32(3000),
    }
    nodes = [
        node("MelWeightMatrix", "b n r l h", "w"),
        node("MatMul", "x w", "y"),
    ]
    model = graph_of(nodes, {"x": (2, 33)}, names)
    assert apply_pass(fold_window_functions, model, 1e-6) == 1
    assert operators_of(model) == ["MatMul"]


def test_a_computed_size_stays():
    nodes = [node("Cast", "x", "n", to=7), node("HannWindow", "n", "y")]
    assert fold_window_functions(graph_of(nodes, {"x": ()})) == 0


def test_a_filter_from_a_negative_frequency_stays():
    names = {
        "b": np.array(8),
        "n": np.array(64),
        "r": np.array(8000),
        "l": np.float32(-0.5),
        "h": np.float32(3000),
    }
    nodes = [node("MelWeightMatrix", "b n r l h", "y")]
    assert fold_window_functions(graph_of(nodes, {}, names)) == 0
