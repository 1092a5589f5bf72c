"""lower_depth_to_space: before and after on the smallest graphs, and where it must not apply."""

import numpy as np
import pytest

from mrt.rewrite.movement.depth_to_space import lower_depth_to_space
from tests.support.graphs import (
    apply_pass,
    constant_named,
    graph_of,
    node,
    operators_of,
)


@pytest.mark.parametrize(
    ("operator", "attributes", "shape"),
    [
        ("DepthToSpace", {}, (2, 12, 3, 2)),
        ("DepthToSpace", {"mode": "CRD"}, (2, 12, 3, 2)),
        ("SpaceToDepth", {}, (2, 3, 4, 6)),
    ],
)
def test_blocks_are_reshape_transpose_reshape(operator, attributes, shape):
    model = graph_of(
        [node(operator, "x", "y", blocksize=2, **attributes)], {"x": shape}
    )
    assert apply_pass(lower_depth_to_space, model, 0) == 1
    assert operators_of(model) == ["Reshape", "Transpose", "Reshape"]
    assert np.prod(constant_named(model, "y.split")) == np.prod(shape)


def test_an_unknown_shape_stays():
    assert (
        lower_depth_to_space(
            graph_of(
                [node("DepthToSpace", "x", "y", blocksize=2)],
                {"x": (1, 4, "h", 2)},
            )
        )
        == 0
    )
