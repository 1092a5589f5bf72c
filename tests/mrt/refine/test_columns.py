import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from mrt.refine.columns import Columns, Window, chosen_places
from tests.graphs import run


def convolved(image, weights, window, groups):
    """[H,W,O] by onnxruntime, of an image [1,H,W,C] and weights [O,KH,KW,C/groups]."""
    node = helper.make_node(
        "Conv", ["x", "w"], ["y"], strides=window.stride, dilations=window.dilation, pads=window.pads, group=groups
    )
    shape = [1, image.shape[3], *image.shape[1:3]]
    graph = helper.make_graph(
        [node],
        "g",
        [helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, None)],
        [numpy_helper.from_array(weights.transpose(0, 3, 1, 2).astype(np.float32).copy(), "w")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)
    return run(model, {"x": image.transpose(0, 3, 1, 2).astype(np.float32).copy()})["y"][0].transpose(1, 2, 0)


CASES = [
    (Window((1, 1), (1, 1), (1, 1), (0, 0, 0, 0)), 1, 6),
    (Window((3, 3), (1, 1), (1, 1), (1, 1, 1, 1)), 1, 4),
    (Window((3, 2), (2, 1), (1, 2), (1, 0, 2, 1)), 2, 6),
    (Window((3, 3), (2, 2), (1, 1), (0, 1, 1, 0)), 4, 4),
]


@pytest.mark.parametrize(("window", "groups", "outputs"), CASES)
def test_means_covariance_and_agreement_are_those_of_the_convolution(window, groups, outputs):
    rng = np.random.default_rng(3)
    weights = rng.integers(-9, 10, (outputs, *window.kernel, 4 // groups))
    scales = rng.uniform(0.5, 2, outputs)
    columns, places, real = Columns(weights.shape, window), [], []
    for count in (2, 1):
        images = rng.integers(-20, 30, (count, 9, 8, 4)).astype(np.float32)
        whole = [convolved(image[None], weights, window, groups) * scales for image in images]
        at = np.concatenate([item[chosen_places(*item.shape[:2])].reshape(-1, outputs) for item in whole])
        float_side = at * 1.5 + rng.normal(size=at.shape)
        columns.add(images, float_side)
        places.append(at)
        real.append(float_side)
        means = [item.mean(axis=(0, 1)) for item in whole]
        assert np.allclose(columns.means_of(weights)[-count:] * scales, means)
    found, twin = np.concatenate(places), np.concatenate(real)
    covariance, variance = columns.agreement(weights, scales)
    assert np.allclose(variance, found.var(axis=0), rtol=1e-4)
    assert np.allclose(covariance, ((found - found.mean(0)) * (twin - twin.mean(0))).mean(0), rtol=1e-3, atol=1e-2)


def test_rows_of_a_matrix_are_their_own_columns():
    rows = np.array([[[1.0, 2.0], [3.0, -2.0]], [[1.0, -2.0], [3.0, 2.0]]], np.float32)
    columns = Columns((1, 2), None)
    columns.add(rows[:1], np.zeros((2, 1)))
    columns.add(rows[1:], np.zeros((2, 1)))
    assert columns.covariance().tolist() == [[[1.0, 0.0], [0.0, 4.0]]]
    assert columns.means_of(np.array([[10, 1]])).tolist() == [[20.0], [20.0]]


def test_of_a_matrix_with_many_rows_some_count_for_the_covariance():
    rows = np.arange(400, dtype=np.float32).reshape(1, 400, 1)
    columns = Columns((1, 1), None)
    columns.add(rows, np.zeros((100, 1)))
    assert columns.covariance().tolist() == [[[np.var(np.arange(2.0, 400, 4))]]]
    assert columns.means_of(np.array([[1]])).tolist() == [[199.5]]
