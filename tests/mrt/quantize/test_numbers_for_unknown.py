"""Numbers such as -999 that stand for unknown ones, and are replaced: they take no bits from the others."""

from __future__ import annotations

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from onnx import TensorProto, helper

import mrt
from tests.support.answers import answers, expected
from tests.support.graphs import graph_of, node

SIZES = np.float32([50, 1, 0.01])


@pytest.mark.parametrize("unknown", [-999.0, -1e6])
@pytest.mark.parametrize("operator", ["Equal", "Less", "either"])
def test_a_number_for_unknown_takes_no_bits_from_the_others(
    unknown, operator, tmp_path
):
    """A table of numbers within 0 and 1, of which some are unknown and replaced."""
    weights = {
        "unknown": np.float32(-1 if operator == "Less" else unknown),
        "greatest": np.float32(2),
        "fill": np.float32([[0.5, 0.4, 0.3, 0.2]]),
        "w": np.random.default_rng(2).normal(size=(4, 3)).astype(np.float32),
    }
    asks = [node(operator, "x unknown", "is_unknown")]
    if operator == "either":
        asks = [
            node("Equal", "x unknown", "is_one"),
            node("Greater", "x greatest", "is_other"),
            node("Or", "is_one is_other", "is_unknown"),
        ]
    nodes = [
        *asks,
        node("Where", "is_unknown fill x", "v"),
        node("MatMul", "v w", "y"),
    ]
    proto = ir.to_proto(graph_of(nodes, {"x": (1, 4)}, weights))
    onnx.save(proto, tmp_path / "m.onnx")
    random = np.random.default_rng(9)
    x = random.uniform(0, 1, (96, 4)).astype(np.float32)
    x[random.uniform(size=x.shape) < 0.2] = unknown
    converted = mrt.convert(tmp_path / "m.onnx", {"x": x})
    wanted = expected(proto, {"x": x})
    found = answers(converted, {"x": x})
    assert np.abs(found - wanted).max() < 0.02 * np.abs(wanted).max()


def with_unknown(sizes, *marks):
    """A table of which every tenth number or so is each of these marks."""
    random = np.random.default_rng(9)
    x = random.uniform(0, 1, (96, len(sizes))) * sizes
    for mark in marks:
        x[random.uniform(size=x.shape) < 0.12] = mark
    return x.astype(np.float32)


@pytest.mark.parametrize("fill", [0.5, 3e5], ids=["usual", "great"])
@pytest.mark.parametrize("has_scaler", [False, True])
def test_two_numbers_for_unknown_are_replaced_one_after_the_other(
    has_scaler, fill, tmp_path
):
    sizes = np.float32([1, 1, 10, 50] if has_scaler else [1, 1, 1, 1])
    random = np.random.default_rng(2)
    weights = {
        "first": np.float32(-999),
        "second": np.float32(-99999),
        "fill": np.float32([[0.5, 0.4, 0.3, 0.2]]) * sizes,
        "other": np.float32(fill),
        "half": sizes / -2,
        "inverse": 1 / sizes,
        "w": random.normal(size=(4, 3)).astype(np.float32),
    }
    scaler = [
        node("Add", "v half", "centred"),
        node("Mul", "centred inverse", "z"),
    ]
    nodes = [
        node("Equal", "x first", "is_first"),
        node("Where", "is_first fill x", "u"),
        node("Equal", "u second", "is_second"),
        node("Where", "is_second other u", "v"),
        *(scaler if has_scaler else []),
        node("MatMul", "z w" if has_scaler else "v w", "y"),
    ]
    proto = ir.to_proto(graph_of(nodes, {"x": (1, 4)}, weights))
    onnx.save(proto, tmp_path / "m.onnx")
    feeds = {"x": with_unknown(sizes, -999, -99999)}
    converted = mrt.convert(tmp_path / "m.onnx", feeds)
    wanted = expected(proto, feeds)
    errors = np.abs(answers(converted, feeds) - wanted)
    assert errors.max() < 0.03 * np.abs(wanted).max()


def pipeline(behind):
    """An imputer of -9999 in three columns, as scikit-learn has it, and what follows it."""
    half = (SIZES / 2).tolist()
    nodes = [
        helper.make_node(
            "Imputer", ["x"], ["v"], domain="ai.onnx.ml", imputed_value_floats=half, replaced_value_float=-9999.0
        ),
        helper.make_node("Scaler", ["v"], ["z"], domain="ai.onnx.ml", offset=half, scale=(1 / SIZES).tolist()),
    ]  # fmt: skip
    if behind == "layer":
        nodes.append(
            helper.make_node(
                "LinearRegressor", ["z"], ["y"], domain="ai.onnx.ml", coefficients=[1.0, -2.0, 3.0], intercepts=[0.0]
            )
        )  # fmt: skip
    elif behind == "tree":
        nodes[1:] = [
            helper.make_node(
                "TreeEnsembleRegressor", ["v"], ["y"], domain="ai.onnx.ml", n_targets=1,
                nodes_treeids=[0] * 5, nodes_nodeids=list(range(5)), nodes_featureids=[1, 0, 2, 0, 0],
                nodes_values=[0.5, 0, 0.005, 0, 0], nodes_modes=["BRANCH_LEQ", "LEAF", "BRANCH_LEQ", "LEAF", "LEAF"],
                nodes_truenodeids=[1, 0, 3, 0, 0], nodes_falsenodeids=[2, 0, 4, 0, 0],
                target_treeids=[0] * 3, target_nodeids=[1, 3, 4], target_ids=[0] * 3, target_weights=[1.0, 2.0, 4.0],
            )
        ]  # fmt: skip
    else:
        nodes[-1].output[0] = "y"
    columns = 3 if behind == "scaler" else 1
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 3])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, columns])],
    )
    opsets = [helper.make_opsetid("", 18), helper.make_opsetid("ai.onnx.ml", 3)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8)


@pytest.mark.parametrize("behind", ["scaler", "layer", "tree"])
def test_numbers_behind_an_imputer_keep_all_bits(behind, tmp_path):
    model = pipeline(behind)
    onnx.save(model, tmp_path / "m.onnx")
    feeds = {"x": with_unknown(SIZES, -9999)}
    found = answers(mrt.convert(tmp_path / "m.onnx", feeds), feeds)
    errors = np.abs(found - expected(model, feeds))
    assert errors.max() < {"scaler": 0.005, "layer": 0.05, "tree": 1e-3}[behind]
