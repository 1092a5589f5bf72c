"""An output of a Sigmoid reaches 1, though no calibration sample raised it there."""

import numpy as np
import onnx
import pytest
from onnx import numpy_helper, parser

import mrt
from mrt.quantize.score_ranges import ranges_of_scores
from mrt.table.table import MeasuredRange
from tests.support.graphs import build, graph_of, node

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


@pytest.mark.parametrize("threshold", [8, 10])
def test_a_score_reaches_1_where_the_samples_left_it_low(tmp_path, threshold):
    score, seen = greatest_score(tmp_path, threshold)
    assert 1 / 256 < seen < 0.2
    assert abs(score - 1 / (1 + np.exp(threshold - HIGH * INPUTS))) < 0.01


def test_a_score_of_next_to_nothing_keeps_its_range(tmp_path):
    score, seen = greatest_score(tmp_path, 14)
    assert seen < 1 / 256
    assert score <= 2.01 * seen


def noise_of(tmp_path, nodes, outputs):
    """The decibels of each output of a program of a score that few samples raise."""
    rng = np.random.default_rng(0)
    weights = {
        "w": rng.normal(size=(4, 3, 1, 1)).astype(np.float32),
        "b": np.full(4, -7, np.float32),
        "v": rng.normal(size=(5, 4, 1, 1)).astype(np.float32),
    }
    score = [node("Conv", "x w b", "c"), node("Sigmoid", "c", "s")]
    proto = build(
        [*score, *nodes], {"x": (1, 3, 6, 6)}, weights, outputs=outputs
    )
    onnx.save(proto, tmp_path / "m.onnx")
    samples = rng.normal(size=(48, 3, 6, 6)).astype(np.float32)
    converted = mrt.convert(
        tmp_path / "m.onnx", {"x": samples[:, None]}, bits=8
    )
    return converted.evaluate({"x": samples[:, None]}).snr_db


def test_a_score_that_others_read_keeps_its_range(tmp_path):
    """What reads it has 8 bits of it, which would all lie above the samples."""
    noise = noise_of(tmp_path, [node("Conv", "s v", "z")], "s z")
    assert noise["z"] > 25


def test_only_what_one_output_alone_shows_is_widened():
    nodes = [
        node("Sigmoid", "x", "s"),
        node("Reshape", "s shape", "y"),
        node("Sigmoid", "x", "t"),
        node("Neg", "t", "z"),
        node("Sigmoid", "x", "u"),
        node("Reshape", "u shape", "v"),
        node("Sigmoid", "x", "next"),
    ]
    model = graph_of(
        nodes,
        {"x": (2, 3)},
        {"shape": np.array([3, 2])},
        outputs="y t z u v next",
    )
    low = MeasuredRange(min=0.0, max=0.01, lo=0.0, hi=0.009)
    ranges = dict.fromkeys(("x", "s", "y", "t", "z", "u", "v", "next"), low)
    wider = ranges_of_scores(model.graph, ["next"], ranges)
    assert wider == dict.fromkeys(
        ("s", "y"), MeasuredRange(min=0.0, max=1.0, lo=0.0, hi=1.0)
    )


def test_a_score_with_too_few_steps_keeps_its_range():
    model = graph_of([node("Sigmoid", "x", "y")], {"x": (2, 3)})
    for measured, names in ((0.0038, set()), (0.004, {"y"}), (0.7, {"y"})):
        range_ = MeasuredRange(0.0, measured, 0.0, measured)
        wider = ranges_of_scores(model.graph, [], {"y": range_})
        assert wider.keys() == names
