"""Constants that a file hands on: behind Identity nodes, and as outputs."""

import numpy as np
import onnx
import pytest

import mrt
from mrt.frontend.onnx import load_onnx
from tests.support.graphs import build, node

RNG = np.random.default_rng(3)


@pytest.fixture(name="path")
def _path(tmp_path):
    return tmp_path / "m.onnx"


def test_a_zero_point_behind_an_identity_is_a_constant(path):
    """As torch writes one constant for equal ones."""
    weights = {
        "w": RNG.integers(-9, 9, (4, 3)).astype(np.int8),
        "ws": np.float32([0.1, 0.2, 0.1, 0.3]),
        "zeros": np.zeros(4, np.int8),
        "s": 0.05,
        "zero": np.array(0, np.int8),
    }
    nodes = [
        node("Identity", "zeros", "wz"),
        node("Identity", "zero", "xz"),
        node("QuantizeLinear", "x s xz", "q"),
        node("DequantizeLinear", "q s xz", "d"),
        node("DequantizeLinear", "w ws wz", "f", axis=0),
        node("Gemm", "d f", "y", transB=1),
    ]
    onnx.save(build(nodes, {"x": (1, 3)}, weights), path)
    x = RNG.normal(size=(40, 3)).astype(np.float32)
    assert mrt.convert(path, x).conversion.quality.verdict.is_good


def test_a_constant_output_keeps_its_name_and_numbers(path):
    nodes = [node("Relu", "x", "y"), node("Mul", "y anchors", "z")]
    anchors = np.float32([8.0, 16.0, 32.0])
    proto = build(
        nodes, {"x": (1, 3)}, {"anchors": anchors}, outputs="z anchors"
    )
    onnx.save(proto, path)
    x = RNG.normal(size=(40, 3)).astype(np.float32)
    program = mrt.convert(path, x).program
    feeds = {"x": x[:1]}
    found = program.dequantize(program.run(program.quantize(feeds)))
    assert list(found) == ["z", "anchors"]
    assert np.allclose(found["anchors"], anchors, rtol=1e-3)


def test_an_identity_of_a_constant_may_be_an_output(path):
    nodes = [node("Relu", "x", "y"), node("Identity", "c", "k")]
    proto = build(
        nodes, {"x": (1, 3)}, {"c": np.float32([1.5, 2.5])}, outputs="y k"
    )
    onnx.save(proto, path)
    model, _ = load_onnx(path)
    assert [value.name for value in model.graph.outputs] == ["y", "k"]
