"""Float's class may be the same in every sample measured: then its agreement shows nothing of the program."""

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

import mrt

SIZE = 40


@pytest.mark.parametrize(
    ("greatest", "word"), [([20.0], "look at it"), ([20.0, -20.0], "good")]
)
def test_one_class_in_all_samples_is_no_evidence(greatest, word, tmp_path):
    """The other scores follow a small column, which 8 bits lose beside the great one that decides the class."""
    weights = np.zeros((2, SIZE), np.float32)
    weights[0, :2] = 1, -1
    weights[1, 2:] = np.linspace(-1, 1, SIZE - 2)
    path = saved(weights, tmp_path)
    rng = np.random.default_rng(0)
    x = np.stack(
        [np.resize(greatest, 28), rng.uniform(-0.07, 0.07, 28)], 1
    ).astype(np.float32)
    converted = mrt.convert(path, {"x": x[:, None]}, bits=8)
    sentence = converted.conversion.quality.sentence
    assert sentence.startswith("agreement 28 of 28 samples")
    assert sentence.endswith(f": {word}")
    is_shown = "dB counted from the outputs' means)" in sentence
    assert is_shown == (word != "good")
    report = converted.evaluate({"x": x[:, None]})
    assert report.classes.has_one_answer == (len(greatest) == 1)


def saved(weights, folder):
    """Save a model y = x @ weights."""
    real = onnx.TensorProto.FLOAT
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", "w"], ["y"])],
        "g",
        [helper.make_tensor_value_info("x", real, [1, 2])],
        [helper.make_tensor_value_info("y", real, [1, SIZE])],
        [numpy_helper.from_array(weights, "w")],
    )
    opsets = [helper.make_opsetid("", 17)]
    onnx.save(
        helper.make_model(graph, opset_imports=opsets, ir_version=9),
        folder / "m.onnx",
    )
    return folder / "m.onnx"
