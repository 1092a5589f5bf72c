"""lower_mod: before and after on the smallest graphs, and where it must not apply."""

import numpy as np
import pytest

from mrt.rewrite.elementwise.mod import lower_mod
from tests.support.graphs import apply_pass, graph_of, node, operators_of, run


def test_a_rest_by_a_tensor_is_what_the_whole_quotient_leaves():
    model = graph_of(
        [node("Mod", "x k", "y", fmod=1)],
        {"x": (2, 3)},
        {"k": [0.7, -1.5, 0.2]},
    )
    assert apply_pass(lower_mod, model, 1e-5) == 1
    assert "Mod" not in operators_of(model)


def test_without_fmod_the_rest_has_the_divisors_sign():
    model = graph_of(
        [node("Mod", "x k", "y", fmod=0)],
        {"x": (4,)},
        {"k": [3.0, -3.0, 3.0, -3.0]},
        opset=20,
    )
    assert lower_mod(model) == 1
    assert run(model, {"x": np.float32([5, 5, -5, -5])})["y"].tolist() == [
        2,
        -1,
        1,
        -2,
    ]


@pytest.mark.parametrize(("kind", "fmod"), [(7, 0), (1, 1)])
def test_integers_and_scalars_with_fmod_stay(kind, fmod):
    constant = np.array([3]) if kind == 7 else np.float32([3])
    model = graph_of(
        [node("Mod", "x k", "y", fmod=fmod)],
        {"x": (4,)},
        {"k": constant},
        kind=kind,
    )
    assert lower_mod(model) == 0


def test_a_rest_that_stays_does_not_end_the_pass():
    nodes = [
        node("Mod", "x c", "a", fmod=1),
        node("Mod", "x k", "b", fmod=1),
        node("Add", "a b", "y"),
    ]
    constants = {"c": np.float32(3), "k": [0.7, -1.5, 0.2]}
    model = graph_of(nodes, {"x": (2, 3)}, constants)
    assert apply_pass(lower_mod, model, 1e-5) == 1


def test_a_rest_of_two_constants_does_not_end_the_pass():
    nodes = [
        node("Mod", "c k", "a", fmod=1),
        node("Mod", "x k", "b", fmod=1),
        node("Add", "a b", "y"),
    ]
    constants = {"c": [3.0, 2.0, 1.0], "k": [0.7, -1.5, 0.2]}
    model = graph_of(nodes, {"x": (2, 3)}, constants)
    assert apply_pass(lower_mod, model, 1e-5) == 1
