"""Numbers that are compared with infinity, as the edges of the first and the last bin are in a file of ebm2onnx."""

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import mrt

EDGES = np.array([-np.inf, -np.inf, -0.4, 0.3, np.inf])
SAMPLES = np.linspace(-1, 1, 64, dtype=np.float32).reshape(-1, 1)
COMPARED = {
    "Greater": np.greater,
    "GreaterOrEqual": np.greater_equal,
    "Less": np.less,
    "LessOrEqual": np.less_equal,
}


def _model(operator: str, operands: list[str]) -> onnx.ModelProto:
    """Say of each edge whether a number lies beyond it."""
    nodes = [
        helper.make_node("Cast", ["x"], ["wide"], to=TensorProto.DOUBLE),
        helper.make_node(operator, operands, ["beyond"]),
        helper.make_node("Cast", ["beyond"], ["y"], to=TensorProto.FLOAT),
    ]
    info = helper.make_tensor_value_info
    graph = helper.make_graph(
        nodes,
        "bins",
        [info("x", TensorProto.FLOAT, [1, 1])],
        [info("y", TensorProto.FLOAT, [1, 5])],
        [numpy_helper.from_array(EDGES, "edges")],
    )
    opsets = [helper.make_opsetid("", 16)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8)


@pytest.mark.parametrize("operator", COMPARED)
@pytest.mark.parametrize("operands", [["edges", "wide"], ["wide", "edges"]])
def test_edges_at_infinity_hold_for_every_number(operator, operands):
    converted = mrt.convert(_model(operator, operands), {"x": SAMPLES})
    program = converted.program
    integers = program.run(program.quantize({"x": SAMPLES}))
    found = program.dequantize(integers)
    of = {"edges": EDGES, "wide": SAMPLES.astype(np.float64)}
    expected = COMPARED[operator](*(of[name] for name in operands))
    assert np.array_equal(found["y"].reshape(-1, 5) > 0.5, expected)
