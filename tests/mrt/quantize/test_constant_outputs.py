"""Outputs that are the same for all inputs: booleans stay booleans, for other operators read them."""

import numpy as np
import onnx
import onnx_ir as ir
import pytest

import mrt
from tests.support.answers import answers, expected
from tests.support.graphs import graph_of, node

SAMPLES = {"x": np.random.default_rng(0).normal(size=(24, 8)).astype("f")}
NUMBERS = {"zero": np.float32(0), "never": np.array(False)}
ABOVE = node("Greater", "x zero", "g")
NEVER = node("And", "g never", "c")


@pytest.mark.parametrize(
    "readers",
    [
        [node("Not", "c", "y")],
        [node("Or", "c g", "y")],
        [node("And", "g c", "y")],
    ],
    ids=["not", "or", "and"],
)
def test_a_boolean_that_is_an_output_has_readers(readers, tmp_path):
    """Once refused: the constant output was of i32, and a logical operator takes bool."""
    nodes = [ABOVE, NEVER, *readers]
    model = graph_of(nodes, {"x": (1, 8)}, NUMBERS, outputs="c y")
    proto = ir.to_proto(model)
    onnx.save(proto, tmp_path / "m.onnx")
    converted = mrt.convert(tmp_path / "m.onnx", SAMPLES, bits=8)
    wanted = expected(proto, SAMPLES)
    assert answers(converted, SAMPLES).tolist() == wanted.tolist()
    outputs = converted.program.run(converted.program.quantize(SAMPLES))
    assert {array.dtype for array in outputs.values()} == {np.dtype(bool)}
