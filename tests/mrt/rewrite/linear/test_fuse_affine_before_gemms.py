"""fuse_affine_before_gemms: before and after on the smallest graphs, and where it must not apply."""

import numpy as np
import pytest

from mrt.rewrite.linear.fuse_affine_before_gemms import (
    fuse_affine_before_gemms,
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
_NORM = node("BatchNormalization", "x g b m v", "a", epsilon=1.0)
_MOVED = [
    node("Transpose", "a", "t", perm=[0, 2, 1]),
    node("Reshape", "t s", "r"),
]


def _model(nodes, outputs="y z", size=(3, 2), perm_shape=(1, 2, 3)):
    return graph_of(
        nodes,
        {"x": perm_shape},
        {
            "w": np.array([[1, 2], [3, 4]], np.float32),
            "u": np.array([[1, 0]], np.float32),
            "c": [8.0, 4.0],
            "d": [0.5],
            "s": np.array(size, np.int64),
            **_PARAMETERS,
        },
        outputs=outputs,
    )


def _gemms(x="r"):
    return [
        node("Gemm", f"{x} w c", "y", transB=1),
        node("Gemm", f"{x} u d", "z", transB=1),
    ]


def test_every_gemm_behind_movements_takes_scale_and_shift():
    model = _model([_NORM, *_MOVED, *_gemms()])
    assert apply_pass(fuse_affine_before_gemms, model) == 1
    assert operators_of(model) == ["Transpose", "Reshape", "Gemm", "Gemm"]
    weight = [[1, 1.5], [3, 3]]
    assert constant_named(model, "y.weight").tolist() == weight
    # 8 + 1 * 0.5 + 2 * -4, 4 + 3 * 0.5 + 4 * -4, 0.5 + 1 * 0.5
    assert constant_named(model, "y.bias").tolist() == [0.5, -10.5]
    assert constant_named(model, "z.weight").tolist() == [[1, 0]]
    assert constant_named(model, "z.bias").tolist() == [1]


def test_several_gemms_without_a_movement():
    model = _model([_NORM, *_gemms("a")], perm_shape=(3, 2))
    assert apply_pass(fuse_affine_before_gemms, model) == 1
    assert operators_of(model) == ["Gemm", "Gemm"]


@pytest.mark.parametrize(
    ("nodes", "outputs"),
    [
        ([_NORM, *_MOVED, *_gemms(), node("Relu", "a", "q")], "y z q"),
        ([_NORM, *_MOVED, *_gemms()], "y z a"),
        ([_NORM, *_MOVED, *_gemms(), node("Relu", "r", "q")], "y z q"),
    ],
)
def test_a_value_with_another_reader_stays(nodes, outputs):
    assert apply_pass(fuse_affine_before_gemms, _model(nodes, outputs)) == 0


def test_columns_that_are_no_channels_stay():
    """Behind this Reshape, a column holds numbers of both channels."""
    nodes = [_NORM, node("Reshape", "a s", "r"), *_gemms()]
    assert apply_pass(fuse_affine_before_gemms, _model(nodes)) == 0
    turned = [_NORM, node("Transpose", "a", "r", perm=[1, 0]), *_gemms()]
    model = _model(turned, perm_shape=(2, 2))
    assert apply_pass(fuse_affine_before_gemms, model) == 0
