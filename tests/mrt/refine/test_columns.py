import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from mrt.refine.columns import (
    BLOCK,
    LayerInputs,
    Window,
    chosen_places,
    products,
    rows_of,
)
from mrt.refine.moments import Rows
from tests.support.graphs import run


def convolved(image, weights, window, groups):
    """[H,W,O] by onnxruntime, of an image [1,H,W,C] and weights [O,KH,KW,C/groups]."""
    node = helper.make_node(
        "Conv",
        ["x", "w"],
        ["y"],
        strides=window.stride,
        dilations=window.dilation,
        pads=window.pads,
        group=groups,
    )
    shape = [1, image.shape[3], *image.shape[1:3]]
    graph = helper.make_graph(
        [node],
        "g",
        [helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, None)],
        [
            numpy_helper.from_array(
                weights.transpose(0, 3, 1, 2).astype(np.float32).copy(), "w"
            )
        ],
    )
    model = helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9
    )
    return run(
        model, {"x": image.transpose(0, 3, 1, 2).astype(np.float32).copy()}
    )["y"][0].transpose(1, 2, 0)


CASES = [
    (Window((1, 1), (1, 1), (1, 1), (0, 0, 0, 0)), 1, 6),
    (Window((3, 3), (1, 1), (1, 1), (1, 1, 1, 1)), 1, 4),
    (Window((3, 2), (2, 1), (1, 2), (1, 0, 2, 1)), 2, 6),
    (Window((3, 3), (2, 2), (1, 1), (0, 1, 1, 0)), 4, 4),
]


@pytest.mark.parametrize(("window", "groups", "outputs"), CASES)
def test_products_of_rows_are_those_of_the_convolution(window, groups, outputs):
    rng = np.random.default_rng(3)
    weights = rng.integers(-9, 10, (outputs, *window.kernel, 4 // groups))
    images = rng.integers(-20, 30, (2, 9, 8, 4)).astype(np.float32)
    whole = [
        convolved(image[None], weights, window, groups) for image in images
    ]
    expected = np.concatenate(
        [
            item[chosen_places(*item.shape[:2])].reshape(-1, outputs)
            for item in whole
        ]
    )
    rows = rows_of(images, window, weights[0].size)
    assert rows.numbers.shape == (groups, len(expected), weights[0].size)
    assert products(rows, weights).tolist() == expected.tolist()


def test_rows_of_a_matrix_are_as_they_are():
    inputs = np.array(
        [[[1.0, 2.0], [3.0, -2.0]], [[1.0, -2.0], [3.0, 2.0]]], np.float32
    )
    assert rows_of(inputs, None, 2).numbers.tolist() == [
        [[1.0, 2.0], [3.0, -2.0], [1.0, -2.0], [3.0, 2.0]]
    ]


def test_of_a_matrix_with_many_rows_some_count():
    inputs = np.arange(400, dtype=np.float32).reshape(1, 400, 1)
    assert rows_of(inputs, None, 1).numbers[0, :, 0].tolist() == list(
        range(2, 400, 4)
    )


@pytest.mark.parametrize("most", [127, 32767])
def test_products_too_great_for_float32_are_exact(most):
    rows = Rows(np.full((1, 1, 3001), 255, np.float32), 255.0)
    weights = np.full((1, 3001), most)
    weights[0, 0] = 1
    assert products(rows, weights).tolist() == [[255.0 * (3000 * most + 1)]]


def test_one_sample_is_one_block():
    sample = np.ones((5, 4), np.float32)
    inputs = LayerInputs([sample], None, length=4, zero_point=0, places=5)
    assert inputs.blocks == [slice(0, max(1, BLOCK // 5))]
    assert inputs.count == 5


@pytest.mark.parametrize(
    "zero_point, greatest", [(0, 200), (-100, 300), (150, 200)]
)
def test_rows_know_their_greatest_magnitude_behind_the_zero_point(
    zero_point, greatest
):
    integers = np.array([[[200, 3], [-50, 7]]], np.int16)
    rows = rows_of(integers, None, 2, zero_point)
    assert rows.greatest == greatest
    assert np.abs(rows.numbers).max() == greatest
