"""Trees that ask for a category, as LightGBM has them, choose in the program the leaf that onnxruntime chooses."""

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import mrt
from tests.support.graphs import run

ROWS = 400


def model_of(far):
    """Categories 2 and 5 share the branch that splits the number of column 0; 3 has a leaf of its own."""
    modes = ["EQ", "EQ", "NEQ", "LEQ"]
    tree = helper.make_node(
        "TreeEnsembleRegressor", ["x"], ["y"], domain="ai.onnx.ml", n_targets=1,
        nodes_treeids=[0] * 8, nodes_nodeids=list(range(8)), nodes_featureids=[1, 1, 1, 0, 0, 0, 0, 0],
        nodes_values=[2, 5, 3, far / 3, 0, 0, 0, 0], nodes_modes=[*[f"BRANCH_{mode}" for mode in modes], *["LEAF"] * 4],
        nodes_truenodeids=[3, 3, 4, 6, 0, 0, 0, 0], nodes_falsenodeids=[1, 2, 5, 7, 0, 0, 0, 0],
        target_treeids=[0] * 4, target_nodeids=[4, 5, 6, 7], target_ids=[0] * 4, target_weights=[1.0, 2.0, 4.0, 8.0],
    )  # fmt: skip
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 2])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 1])
    graph = helper.make_graph([tree], "g", [x], [y])
    opsets = [helper.make_opsetid("", 18), helper.make_opsetid("ai.onnx.ml", 3)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8)


@pytest.mark.parametrize("far", [1.0, 10_000.0])
def test_every_row_has_the_leaf_that_onnxruntime_chooses(far, tmp_path):
    random = np.random.default_rng(3)
    x = random.uniform(-far, far, (ROWS, 2)).astype(np.float32)
    x[:, 1] = random.integers(0, 8, ROWS)
    proto = model_of(far)
    onnx.save(proto, tmp_path / "m.onnx")
    program = mrt.convert(tmp_path / "m.onnx", {"x": x[:200]}).program
    found = program.dequantize(program.run(program.quantize({"x": x})))["y"]
    wanted = [run(proto, {"x": row[None]})["y"] for row in x]
    assert set(np.ravel(wanted)) == {1.0, 2.0, 4.0, 8.0}
    assert np.array_equal(np.rint(found).ravel(), np.ravel(wanted))
