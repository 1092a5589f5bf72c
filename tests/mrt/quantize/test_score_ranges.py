"""An output of a Sigmoid reaches 1, though no calibration sample raised it there."""

import numpy as np
import onnx
import pytest
from onnx import numpy_helper, parser

import mrt

INPUTS = 16
HIGH = 0.99
MODEL = """<ir_version: 9, opset_import: ["" : 17]>
main (float[1, 16] x) => (float[1, 1, 1] score)
<float threshold = {%s}, int64[3] shape = {1, 1, 1}> {
  total = MatMul (x, w)
  low = Sub (total, threshold)
  raised = Sigmoid (low)
  score = Reshape (raised, shape)
}"""


def greatest_score(tmp_path, threshold):
    """What the program gives where all inputs are 0.99, having seen sums of about 0 less the threshold, and what it had seen."""
    proto = parser.parse_model(MODEL % threshold)
    weights = np.ones((INPUTS, 1), np.float32)
    proto.graph.initializer.append(numpy_helper.from_array(weights, "w"))
    onnx.save(proto, tmp_path / "m.onnx")
    rng = np.random.default_rng(0)
    samples = rng.uniform(-1, 1, (64, 1, INPUTS)).astype(np.float32)
    converted = mrt.convert(tmp_path / "m.onnx", {"x": samples}, bits=8)
    seen = 1 / (1 + np.exp(threshold - samples.sum(axis=(1, 2)).max()))
    program = converted.program
    inputs = {"x": np.full((1, INPUTS), HIGH, np.float32)}
    answer = program.run(program.quantize(inputs))
    (real,) = program.dequantize(answer).values()
    return float(real.reshape(-1)[0]), float(seen)


@pytest.mark.parametrize("threshold", [8, 12])
def test_a_score_reaches_1_where_the_samples_left_it_low(tmp_path, threshold):
    score, seen = greatest_score(tmp_path, threshold)
    assert 2**-12 < seen < 0.2
    assert abs(score - 1 / (1 + np.exp(threshold - HIGH * INPUTS))) < 0.01


def test_a_score_of_next_to_nothing_keeps_its_range(tmp_path):
    score, seen = greatest_score(tmp_path, 15)
    assert seen < 2**-12
    assert score <= 2.01 * seen
