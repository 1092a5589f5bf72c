"""Where float's best two are as good as equal, another best one is no other answer; elsewhere it is."""

import numpy as np
import onnx
import pytest

import mrt
from mrt.evaluate.ties import is_tie
from tests.support.graphs import build, node

WAVE = np.cos(2 * np.pi * np.arange(40) / 10)
RIPPLE = 0.001 * np.cos(2 * np.pi * np.arange(40) / 40)


@pytest.mark.parametrize(
    ("scores", "is_expected"),
    [
        ([3.0, 1.0, -4.0], False),
        ([3.0, 2.99, -4.0], True),
        ([3.0, 2.9, -4.0], False),
        ([0.5, 0.5], False),  # of two, nothing says how far apart is near
        ([0.2, 0.2, 0.2], False),
        (WAVE + RIPPLE, True),
        ([3.0, 2.9, -4.0, -1e9, -1e4], False),
        ([3.0, 2.99, -4.0, -1e9, -1e4], True),
        ([-1.0, -1.2, -300.0, -800.0], False),
        ([3.0, 2.9, 1.0, -np.inf], False),
        ([0.98, 0.95, 0.1], False),
        ([1.0, 1.0, 0.9, 0.1], True),
    ],
)
def test_the_best_two_tie_where_one_is_as_good_as_the_other(
    scores, is_expected
):
    assert is_tie(np.array([scores])) == is_expected


def saved(folder, weights, operator="Identity"):
    nodes = [node("MatMul", "x w", "m"), node(operator, "m", "y")]
    tensors = {"w": weights.astype(np.float32)}
    model = build(nodes, {"x": (1, len(weights))}, tensors)
    onnx.save(model, folder / "m.onnx")
    return folder / "m.onnx"


def samples(width, scale=1.0, count=40):
    rng = np.random.default_rng(1)
    x = scale * rng.uniform(-1, 1, (count, 1, width))
    return {"x": x.astype(np.float32)}


def waves():
    """Return 16 waves of several heights, whose sums have equal crests but for the ripple."""
    heights = np.random.default_rng(2).normal(size=16)
    return heights[:, None] * WAVE + RIPPLE


def test_a_wave_is_judged_by_its_noise(tmp_path):
    """Its crests are equal but for a ripple that no program of 8 bits gives."""
    weights = waves()
    converted = mrt.convert(saved(tmp_path, weights), samples(16))
    assert not converted.conversion.chosen
    sentence = converted.conversion.quality.sentence
    assert sentence.startswith("SNR")
    assert sentence.endswith(": good")


def test_frames_that_say_yes_are_judged_by_their_noise(tmp_path):
    """Several are 1 but for a thousandth in nearly each sample, which one is the greatest says nothing."""
    weights = np.random.default_rng(0).normal(size=(8, 40))
    path = saved(tmp_path, weights, "Sigmoid")
    converted = mrt.convert(path, samples(8, 4.0))
    assert not converted.conversion.chosen
    assert converted.conversion.quality.report.class_output is None


def test_a_class_output_that_is_named_or_labelled_counts_in_every_sample(
    tmp_path,
):
    weights = waves()
    data = samples(16)
    converted = mrt.convert(saved(tmp_path, weights), data, bits=8)
    assert converted.evaluate(data).agreement is None
    named = converted.evaluate(data, class_output="y")
    assert named.agreement is not None
    assert named.agreement < 0.9
    assert named.classes.ties == 0
    labels = np.zeros(40, np.int64)
    labelled = converted.evaluate({**data, "y": labels})
    assert labelled.agreement == named.agreement


def test_a_classifier_that_loses_its_answers_is_still_called_so(tmp_path):
    """A great number that is common to all classes leaves a few steps to those that decide."""
    weights = np.random.default_rng(0).normal(size=(17, 10))
    weights[-1] = 1
    x = samples(17)
    x["x"][..., -1] *= 300
    converted = mrt.convert(saved(tmp_path, weights), x, bits=8)
    report = converted.evaluate(x)
    assert report.answers > 30
    assert report.agreement < 0.75
    assert not converted.conversion.quality.verdict.is_good
