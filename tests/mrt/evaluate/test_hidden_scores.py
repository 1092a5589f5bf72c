"""The signal to noise of scores that a program has as values before probabilities."""

import numpy as np
import onnx
import pytest
from onnx import parser

import mrt
from mrt.calibrate.samples import Samples
from mrt.evaluate import hidden_scores
from mrt.evaluate.hidden_scores import hidden_scores_db

MODEL = """<ir_version: 9, opset_import: ["" : 17]>
main (float[1, 3] x) => (float[1, 3] y)
<float[3, 3] w = {1, 2, 3, -3, 1, 0, 2, -2, 1}, float[3] common = {1000, 1000, 1000},
float[3] mask = {-1e9, -1e9, -1e9}, float zero = {0}> { BODY }"""
X = np.random.default_rng(0).normal(size=(32, 1, 3)).astype(np.float32)


def scores_db(body, path, measured=None):
    """Convert, and measure the scores of the output, on the samples that were calibrated on unless others are given."""
    onnx.save(parser.parse_model(MODEL.replace("BODY", body)), path)
    converted = mrt.convert(path, {"x": X}, bits=8, held_back=0)
    conversion = converted.conversion
    measured = X if measured is None else measured
    samples = Samples(
        ("x",), len(X), None, "test", lambda: iter({"x": x} for x in measured)
    )
    return hidden_scores_db(
        conversion.model.model, conversion.proven, samples, {"y"}
    )


PLAIN = "s = MatMul (x, w) y = Softmax (s)"


def test_what_all_scores_of_a_softmax_have_in_common_does_not_count(tmp_path):
    plain = scores_db(PLAIN, tmp_path / "m.onnx")["y"]
    assert 30 < plain < 60
    shifted = "t = MatMul (x, w) s = Add (t, common) {}"
    softmax = shifted.format("y = Softmax (s)")
    sigmoid = shifted.format("y = Sigmoid (s)")
    of_softmax = scores_db(softmax, tmp_path / "m.onnx")["y"]
    of_sigmoid = scores_db(sigmoid, tmp_path / "m.onnx")["y"]
    assert of_softmax < of_sigmoid - 20


def test_infinite_scores_do_not_hide_the_others(tmp_path):
    """Without logarithms of numbers near 0, of which 8 bits keep little, more is left of the others."""
    body = "p = Abs (x) s = Log (p) y = Softmax (s)"
    zeros = X * (np.abs(X) > 0.1)
    plain = scores_db(body, tmp_path / "m.onnx")["y"]
    others = scores_db(body, tmp_path / "m.onnx", zeros)["y"]
    assert plain < others < 60


@pytest.mark.parametrize(
    "body",
    [
        "t = MatMul (x, w) b = Greater (x, zero) s = Where (b, t, mask) y = Softmax (s)",
        "y = Softmax (x)",
        "s = MatMul (x, w) y = Relu (s)",
    ],
)
def test_masked_scores_and_inputs_are_not_measured(body, tmp_path):
    assert scores_db(body, tmp_path / "m.onnx") == {}


def test_scores_are_measured_on_some_of_many_samples(tmp_path, monkeypatch):
    of_all = scores_db(PLAIN, tmp_path / "m.onnx")
    monkeypatch.setattr(hidden_scores, "MOST_SAMPLES", 2)
    assert scores_db(PLAIN, tmp_path / "m.onnx") != of_all
