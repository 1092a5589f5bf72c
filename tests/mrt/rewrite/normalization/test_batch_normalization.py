"""lower_batch_normalization: before and after on the smallest graphs, and where it must not apply."""

import numpy as np
import pytest

from mrt.rewrite.normalization.batch_normalization import (
    lower_batch_normalization,
)
from tests.support.graphs import (
    apply_pass,
    constant_named,
    graph_of,
    node,
    operators_of,
)

_PARAMETERS = {
    "g": [2.0, 3.0],
    "b": [1.0, -1.0],
    "m": [0.5, 4.0],
    "v": [3.0, 15.0],
}
# gamma / sqrt(variance + 1) = 2/2, 3/4; beta - mean * scale = 1 - 0.5, -1 - 3
_SCALE, _SHIFT = [1.0, 0.75], [0.5, -4.0]


def _norm(shape, parameters=None, **attributes):
    norm = node(
        "BatchNormalization", "x g b m v", "y", epsilon=1.0, **attributes
    )
    return graph_of([norm], {"x": shape}, parameters or _PARAMETERS)


def test_on_images_it_is_a_depthwise_convolution():
    model = _norm((1, 2, 3, 3))
    assert apply_pass(lower_batch_normalization, model) == 1
    assert operators_of(model) == ["Conv"]
    assert constant_named(model, "y.weight").reshape(-1).tolist() == _SCALE
    assert constant_named(model, "y.bias").tolist() == _SHIFT
    assert model.graph[0].attributes["group"].as_int() == 2


@pytest.mark.parametrize("shape", [(4, 2), (4, 2, 5)])
def test_elsewhere_it_is_a_mul_and_an_add(shape):
    model = _norm(shape)
    assert apply_pass(lower_batch_normalization, model) == 1
    assert operators_of(model) == ["Mul", "Add"]
    assert constant_named(model, "y.scale").reshape(-1).tolist() == _SCALE


def test_a_variance_below_minus_epsilon_stays():
    assert (
        lower_batch_normalization(
            _norm((1, 2, 3, 3), _PARAMETERS | {"v": [-2.0, 1.0]})
        )
        == 0
    )


def test_computed_parameters_stay():
    norm = node("BatchNormalization", "x g b m v", "y")
    model = graph_of(
        [norm],
        {"x": (1, 2, 3, 3), "g": (2,)},
        {k: np.ones(2, np.float32) for k in "bmv"},
    )
    assert lower_batch_normalization(model) == 0


def test_a_norm_that_stays_is_passed_over():
    nodes = [
        node("BatchNormalization", "x scale b m v", "n"),
        node("BatchNormalization", "n g b m v", "y"),
    ]
    shapes = {"x": (1, 2, 3, 3), "scale": (2,)}
    model = graph_of(nodes, shapes, _PARAMETERS)
    assert lower_batch_normalization(model) == 1
    assert operators_of(model) == ["BatchNormalization", "Conv"]
