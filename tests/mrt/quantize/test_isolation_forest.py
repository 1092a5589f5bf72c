"""A tree that says which leaf a row reaches, as isolation forests are exported: the leaf's number finds its path's length."""

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from mrt.calibrate.collect import calibrate
from mrt.calibrate.samples import synthetic_samples
from mrt.frontend.onnx import load_onnx
from mrt.quantize import QuantizeOptions, quantize
from mrt.rewrite import rewrite
from mrt.table.table import CalibrationOptions
from tests.support.float_models import run_real
from tests.support.graphs import run

NUMBERS, LENGTHS = (
    [3, 150, 298, 299],
    [1.0, 2.0, 3.0, 3.0],
)  # of the leaves, whose rows of the table lie side by side
ROWS = np.float32(
    [
        [-0.9, 0, 0, 0],
        [0.9, -0.9, 0, 0],
        [0.9, 0.9, 0.9, 0],
        [0.9, 0.9, -0.9, 0],
    ]
)  # one for each leaf


def forest() -> onnx.ModelProto:
    """Feature 0 at 0: yes, leaf 3; no, feature 1: yes, leaf 150; no, feature 2: yes, leaf 299; no, leaf 298."""
    tree = helper.make_node(
        "TreeEnsembleRegressor", ["x"], ["number"], domain="ai.onnx.ml", n_targets=1,
        nodes_treeids=[0] * 7, nodes_nodeids=list(range(7)), nodes_featureids=[0, 0, 1, 0, 2, 0, 0],
        nodes_values=[0.0] * 7, nodes_modes=["BRANCH_LEQ", "LEAF", "BRANCH_LEQ", "LEAF", "BRANCH_LEQ", "LEAF", "LEAF"],
        nodes_truenodeids=[1, 0, 3, 0, 5, 0, 0], nodes_falsenodeids=[2, 0, 4, 0, 6, 0, 0],
        target_treeids=[0] * 4, target_nodeids=[1, 3, 6, 5], target_ids=[0] * 4, target_weights=[*map(float, NUMBERS)],
    )  # fmt: skip
    nodes = [
        tree,
        helper.make_node("Cast", ["number"], ["place"], to=TensorProto.INT64),
        helper.make_node("LabelEncoder", ["place"], ["length"], domain="ai.onnx.ml", keys_int64s=NUMBERS, values_floats=LENGTHS),
        helper.make_node("Cast", ["place"], ["found"], to=TensorProto.FLOAT),
    ]  # fmt: skip
    outputs = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, [4, 1])
        for name in ("length", "found")
    ]
    declared = [helper.make_tensor_value_info("x", TensorProto.FLOAT, [4, 4])]
    graph = helper.make_graph(nodes, "forest", declared, outputs)
    opsets = [helper.make_opsetid("", 18), helper.make_opsetid("ai.onnx.ml", 3)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8)


@pytest.mark.parametrize("bits", [8, 16])
def test_every_leaf_is_told_from_its_neighbour(bits, tmp_path):
    proto = forest()
    onnx.save(proto, tmp_path / "m.onnx")
    model, _ = load_onnx(tmp_path / "m.onnx")
    rewrite(model)
    samples = synthetic_samples({"x": (4, 4)}, 20, 0)
    table = calibrate(
        model, samples, CalibrationOptions(), model_sha256="0" * 64
    )
    found = run_real(
        quantize(model, table, QuantizeOptions(8, bits)), {"x": ROWS}
    )
    expected = run(proto, {"x": ROWS})
    assert expected["found"].ravel().tolist() == [3, 150, 298, 299]
    assert found["found"].ravel().tolist() == [3, 150, 298, 299]
    assert found["length"].ravel().tolist() == LENGTHS
