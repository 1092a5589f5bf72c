import numpy as np
import onnx
import pytest

import mrt
from mrt.calibrate.collect import calibrate
from mrt.calibrate.samples import synthetic_samples
from mrt.frontend.onnx import load_onnx
from mrt.quantize import QuantizeOptions
from mrt.refine import RefineOptions
from mrt.refine.columns import POSITIONS, chosen_places
from mrt.rewrite import rewrite
from mrt.table.table import CalibrationOptions
from tests.support.float_models import FloatModel
from tests.support.graphs import build, node
from tests.support.refining import refine

RNG = np.random.default_rng(4)


@pytest.mark.parametrize(
    ("height", "width"),
    [(1, 640), (640, 1), (2, 5000), (1, 1), (3, 4), (56, 56), (7, 400)],
)
def test_places_are_chosen_of_lines_as_of_images(height, width):
    chosen = np.ones((height, width))[chosen_places(height, width)].size
    assert min(height * width, POSITIONS) / 2 <= chosen <= 2 * POSITIONS


def decisions(tmp_path, nodes, shape, weights):
    """What refinement finds for a model of one layer: nothing is to go wrong on the way."""
    onnx.save(build(nodes, {"x": shape}, weights), tmp_path / "m.onnx")
    model, _ = load_onnx(tmp_path / "m.onnx")
    rewrite(model)
    samples = synthetic_samples({"x": shape}, 8, 0)
    table = calibrate(
        model, samples, CalibrationOptions(), model_sha256="0" * 64
    )
    stages = RefineOptions.of(["weights", "biases"])
    return refine(model, table, QuantizeOptions(), stages, samples).decisions


def test_a_convolution_along_one_axis_is_refined(tmp_path):
    weights = {"w": RNG.normal(size=(4, 2, 3)).astype(np.float32)}
    assert decisions(
        tmp_path,
        [node("Conv", "x w", "y", kernel_shape=[3])],
        (1, 2, 640),
        weights,
    ).layers


def test_a_layer_that_reads_the_input_as_it_lies_is_refined(tmp_path):
    """Channels last, as TensorFlow's exporters write: the Transpose in front costs no instruction."""
    weights = {"w": RNG.normal(size=(4, 3, 3, 3)).astype(np.float32)}
    nodes = [
        node("Transpose", "x", "t", perm=[0, 3, 1, 2]),
        node("Conv", "t w", "y", kernel_shape=[3, 3]),
    ]
    assert decisions(tmp_path, nodes, (1, 12, 12, 3), weights).layers


def test_a_matrix_with_more_rows_than_count_is_refined(tmp_path):
    weights = {"w": RNG.normal(size=(4, 3)).astype(np.float32)}
    assert decisions(
        tmp_path, [node("Gemm", "x w", "y")], (401, 4), weights
    ).layers


def test_inputs_that_vary_little_far_from_zero_are_refined_in_16_bits():
    """About 32000 plus or minus 1: float32 would lose their variance, which then is below zero."""
    rng = np.random.default_rng(3)
    inputs = (100 + 0.003 * rng.normal(size=(400, 1, 12))).astype(np.float32)
    weights = rng.normal(size=(5, 12))
    model = FloatModel(x=(1, 12))
    output = model.gemm("x", weights, -100 * weights.sum(axis=1))
    onnx_model = model.proto(output)
    converted = mrt.convert(
        onnx_model, inputs, activation_bits=16, refine=["fit", "weights"]
    )
    assert converted.table.decisions.layers
    assert converted.conversion.remarks.notes == []
