"""A detector that no calibration sample raises is named, by `mrt convert` and by `mrt evaluate`."""

import numpy as np
import onnx
import pytest
from onnx import parser

import mrt

MODEL = """<ir_version: 9, opset_import: ["" : 17]>
main (float[1, 4] x) => (float[1, 4] score, float[1, 4] level)
<float high = {9}, int64[2] shape = {1, 4}> {
  low = Sub (x, high)
  made = Sigmoid (low)
  score = Reshape (made, shape)
  level = Abs (x)
}"""


@pytest.mark.parametrize(
    ("highest", "is_named"), [(1, True), (7.5, True), (7.7, False)]
)
def test_a_score_that_stays_low(highest, is_named, tmp_path):
    """sigmoid(7.5 - 9) is 0.18, sigmoid(7.7 - 9) is 0.21."""
    onnx.save(parser.parse_model(MODEL), tmp_path / "m.onnx")
    rng = np.random.default_rng(0)
    samples = rng.uniform(-1, 1, (64, 1, 4)).astype(np.float32)
    samples[1] = highest  # the first is held back
    converted = mrt.convert(tmp_path / "m.onnx", {"x": samples})
    warnings = converted.conversion.remarks.warnings
    found = [text for text in warnings if "is a Sigmoid's" in text]
    assert len(found) == is_named
    assert all(text.startswith("output 'score'") for text in found)
    word = "look at it" if is_named else "good"
    assert converted.conversion.quality.verdict.word == word
    report = converted.evaluate({"x": samples})
    assert report.to_json()["verdict"] == word
    assert ("score" in report.scores.unreachable) == is_named
