"""Operators of ai.onnx.ml mean what onnxruntime computes; what has no tensors is refused by name."""

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from mrt.errors import Unsupported
from mrt.frontend.onnx import load_onnx
from tests.graphs import assert_same, run

X = np.random.default_rng(0).normal(size=(5, 3)).astype(np.float32)
WEIGHTS = {"coefficients": [0.5, -1.0, 2.0, 1.0, 0.25, -0.5], "intercepts": [0.1, -0.2]}
FORMS = {
    "Scaler": ("Scaler", {"offset": [1.0, 2.0, 3.0], "scale": [0.5, 2.0, 1.0]}),
    "Scaler of one number": ("Scaler", {"offset": [1.0], "scale": [0.5]}),
    "Normalizer L1": ("Normalizer", {"norm": "L1"}),
    "Normalizer L2": ("Normalizer", {"norm": "L2"}),
    "LinearRegressor": ("LinearRegressor", WEIGHTS | {"targets": 2}),
    "LinearClassifier": ("LinearClassifier", WEIGHTS | {"classlabels_ints": [7, 3], "post_transform": "SOFTMAX"}),
    "LinearClassifier, logistic": (
        "LinearClassifier",
        WEIGHTS | {"classlabels_ints": [0, 1], "post_transform": "LOGISTIC"},
    ),
    "LinearClassifier, sums": ("LinearClassifier", WEIGHTS | {"classlabels_ints": [0, 1]}),
}


# Feature 0 at 0.25: yes, a leaf; no, feature 2 at -0.5: two leaves. The second tree is one leaf.
NODES = {
    "nodes_treeids": [0, 0, 0, 0, 0, 1], "nodes_nodeids": [0, 1, 2, 3, 4, 0], "nodes_featureids": [0, 0, 2, 0, 0, 0],
    "nodes_values": [0.25, 0.0, -0.5, 0.0, 0.0, 0.0], "nodes_truenodeids": [1, 0, 3, 0, 0, 0],
    "nodes_falsenodeids": [2, 0, 4, 0, 0, 0],
}  # fmt: skip


def trees(mode, **more):
    return NODES | {"nodes_modes": [mode, "LEAF", mode, "LEAF", "LEAF", "LEAF"]} | more


def leaves(role):
    names = ("treeids", "nodeids", "ids", "weights")
    rows = [(0, 1, 0, 1.5), (0, 3, 1, 2.0), (0, 4, 0, -1.0), (0, 4, 1, 0.25), (1, 0, 0, 0.125), (1, 0, 1, -0.5)]
    return {f"{role}_{name}": list(column) for name, column in zip(names, zip(*rows, strict=True), strict=True)}


for kind in ("BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT"):
    FORMS[f"TreeEnsembleRegressor {kind}"] = (
        "TreeEnsembleRegressor", trees(kind, n_targets=2, base_values=[0.5, -0.5], **leaves("target")))  # fmt: skip
FORMS["TreeEnsembleClassifier"] = (
    "TreeEnsembleClassifier", trees("BRANCH_LEQ", classlabels_int64s=[0, 1], **leaves("class")))  # fmt: skip


def model_of(folder, operator, attributes, inputs="x", weights=()):
    outputs = ["label", "y"] if operator.endswith("Classifier") else ["y"]
    one = helper.make_node(operator, inputs.split(), outputs, name="one", domain="ai.onnx.ml", **attributes)
    values = [helper.make_empty_tensor_value_info(name) for name in outputs]
    for value in values:
        value.type.tensor_type.elem_type = onnx.TensorProto.INT64 if value.name == "label" else onnx.TensorProto.FLOAT
    arrays = [numpy_helper.from_array(array, name) for name, array in dict(weights).items()]
    graph = helper.make_graph([one], "g", [helper.make_tensor_value_info("x", 1, X.shape)], values, arrays)
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("ai.onnx.ml", 1)]
    proto = helper.make_model(graph, opset_imports=opsets, ir_version=8)
    onnx.save(proto, folder / "m.onnx")
    return proto


@pytest.mark.parametrize("name", FORMS)
def test_it_means_what_onnxruntime_computes(name, tmp_path):
    proto = model_of(tmp_path, *FORMS[name])
    model, _ = load_onnx(tmp_path / "m.onnx")
    assert_same(run(proto, {"x": X}), run(model, {"x": X}))


def test_columns_by_their_places(tmp_path):
    proto = model_of(tmp_path, "ArrayFeatureExtractor", {}, "x places", {"places": np.array([2, 0])})
    model, _ = load_onnx(tmp_path / "m.onnx")
    assert_same(run(proto, {"x": X}), run(model, {"x": X}))


@pytest.mark.parametrize(
    ("operator", "attributes", "sentence"),
    [
        ("Normalizer", {"norm": "MAX"}, r"one \(Normalizer\): norm=MAX; expected L1 or L2"),
        ("LinearRegressor", WEIGHTS | {"targets": 4}, r"6 coefficients and 2 intercepts for 4 results"),
        (
            "LinearClassifier",
            WEIGHTS | {"classlabels_strings": ["a", "b"]},
            "expected two or more labels that are integers",
        ),
        (
            "LinearRegressor",
            WEIGHTS | {"targets": 2, "post_transform": "PROBIT"},
            "post_transform=PROBIT; expected NONE",
        ),
        (
            "TreeEnsembleRegressor",
            trees("BRANCH_EQ", n_targets=2, **leaves("target")),
            "tree 0: questions of the kinds BRANCH_EQ",
        ),
        (
            "TreeEnsembleRegressor",
            trees("BRANCH_LEQ", n_targets=2, **leaves("target")) | {"nodes_truenodeids": [1, 0, 0, 0, 0, 0]},
            "tree 0: its nodes are no tree",
        ),
        (
            "TreeEnsembleRegressor",
            trees("BRANCH_LEQ", n_targets=3, **leaves("target")),
            "no tree whose every leaf speaks of result 2; runtimes read that in different ways",
        ),
        ("TreeEnsembleRegressor", trees("BRANCH_LEQ", **leaves("target")), "a weight for result 1 of 1"),
        ("Scaler", {"offset": "much"}, r"one \(Scaler\): operator of the domain 'ai.onnx.ml'"),
        ("Imputer", {}, r"one \(Imputer\): operator of the domain 'ai.onnx.ml'"),
    ],
)
def test_what_is_not_supported_is_named(operator, attributes, sentence, tmp_path):
    model_of(tmp_path, operator, attributes)
    with pytest.raises(Unsupported, match=sentence):
        load_onnx(tmp_path / "m.onnx")


def test_dictionaries_of_columns_are_the_columns(tmp_path):
    model_of(tmp_path, "ZipMap", {"classlabels_int64s": [0, 1, 2]})
    (found,) = run(load_onnx(tmp_path / "m.onnx")[0], {"x": X}).values()
    assert np.array_equal(found, X)
