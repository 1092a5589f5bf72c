"""write_default_attributes: before and after on the smallest graphs, and where it must not apply."""

import numpy as np
import pytest

from mrt.rewrite.default_attributes import write_default_attributes
from tests.support.graphs import apply_pass, graph_of, node


@pytest.mark.parametrize(
    ("one", "name", "value"),
    [
        (node("Elu", "x", "y"), "alpha", 1.0),
        (node("Gelu", "x", "y"), "approximate", "none"),
        (node("Celu", "x", "y"), "alpha", 1.0),
    ],
)
def test_a_default_is_written(one, name, value):
    model = graph_of([one], {"x": (2, 3)})
    assert apply_pass(write_default_attributes, model, 0) == 1
    assert model.graph[0].attributes[name].value == value


def test_what_is_written_stays():
    model = graph_of([node("Elu", "x", "y", alpha=0.5)], {"x": (2, 3)})
    assert apply_pass(write_default_attributes, model, 0) == 0
    assert model.graph[0].attributes["alpha"].value == 0.5


def test_automatic_padding_is_never_written():
    model = graph_of(
        [node("Conv", "x w", "y")],
        {"x": (1, 1, 3, 3)},
        {"w": np.ones((1, 1, 2, 2), np.float32)},
    )
    apply_pass(write_default_attributes, model, 0)
    assert sorted(model.graph[0].attributes) == ["group"]
