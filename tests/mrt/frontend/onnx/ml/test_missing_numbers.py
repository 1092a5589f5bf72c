"""A note says that samples with NaN are refused, where a model has a place for them."""

import onnx
import pytest
from onnx import TensorProto, helper

from mrt.frontend import load

NAN = float("nan")
FILLED = {"imputed_value_floats": [7.0]}
TREE = {
    "nodes_treeids": [0, 0, 0],
    "nodes_nodeids": [0, 1, 2],
    "nodes_featureids": [0, 0, 0],
    "nodes_values": [0.25, 0.0, 0.0],
    "nodes_truenodeids": [1, 0, 0],
    "nodes_falsenodeids": [2, 0, 0],
    "nodes_modes": ["BRANCH_LEQ", "LEAF", "LEAF"],
    "target_treeids": [0, 0],
    "target_nodeids": [1, 2],
    "target_ids": [0, 0],
    "target_weights": [1.0, 2.0],
    "n_targets": 1,
}


def notes(folder, *operators):
    """The notes on a model of operators one behind the other."""
    nodes, values = [], [*"xabc"[: len(operators)], "y"]
    for place, (operator, attributes) in enumerate(operators):
        domain = "" if operator in ("Neg", "Exp") else "ai.onnx.ml"
        ends = [values[place]], [values[place + 1]]
        nodes.append(
            helper.make_node(
                operator, *ends, name=operator, domain=domain, **attributes
            )
        )
    ends = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, [5, size])
        for name, size in (("x", 3), ("y", None))
    ]
    graph = helper.make_graph(nodes, "g", ends[:1], ends[1:])
    domains = [("", 17), ("ai.onnx.ml", 3)]
    imports = [helper.make_opsetid(*entry) for entry in domains]
    path = folder / "m.onnx"
    onnx.save(helper.make_model(graph, opset_imports=imports), path)
    return load(path).notes


IMPUTER = ("Imputer", FILLED | {"replaced_value_float": NAN})
SCALER = ("Scaler", {"offset": [1.0], "scale": [2.0]})
FOREST = (
    "TreeEnsembleRegressor",
    TREE | {"nodes_missing_value_tracks_true": [1, 0, 0]},
)


@pytest.mark.parametrize(
    ("operators", "beginning"),
    [
        ([IMPUTER], "'Imputer' (Imputer) fills in"),
        ([SCALER, IMPUTER], "'Imputer' (Imputer) fills in"),
        ([FOREST], "'TreeEnsembleRegressor' (TreeEnsembleRegressor) has"),
        ([IMPUTER, FOREST], "'Imputer' (Imputer) fills in"),
    ],
    ids=lambda item: None if isinstance(item, str) else item[-1][0],
)
def test_what_awaits_missing_numbers_is_noted_once(
    operators, beginning, tmp_path
):
    (found,) = notes(tmp_path, *operators)
    assert found.startswith(beginning)
    assert found.endswith(
        "missing numbers (NaN), and a program has none: samples with NaN in 'x' are refused, so fill them in before"
    )


@pytest.mark.parametrize(
    "operators",
    [
        [("Imputer", FILLED | {"replaced_value_float": -1.0})],
        [("TreeEnsembleRegressor", TREE)],
        [("Exp", {}), IMPUTER],  # of what the model computes
    ],
    ids=["a number", "no branch", "computed"],
)
def test_what_awaits_none_in_inputs_is_not_noted(operators, tmp_path):
    assert not notes(tmp_path, *operators)


@pytest.mark.parametrize("kind", [TensorProto.FLOAT, TensorProto.INT64])
def test_what_does_not_equal_itself_is_a_missing_number(kind, tmp_path):
    nodes = [
        helper.make_node("Equal", ["x", "x"], ["e"], name="Equal"),
        helper.make_node("Cast", ["e"], ["y"], to=TensorProto.FLOAT),
    ]
    ends = [
        helper.make_tensor_value_info("x", kind, [5, 3]),
        helper.make_tensor_value_info("y", TensorProto.FLOAT, [5, 3]),
    ]
    graph = helper.make_graph(nodes, "g", ends[:1], ends[1:])
    imports = [helper.make_opsetid("", 17)]
    path = tmp_path / "m.onnx"
    onnx.save(helper.make_model(graph, opset_imports=imports), path)
    noted = ["'Equal' (Equal) looks for missing"] * (kind == TensorProto.FLOAT)
    assert [note[: len("'Equal' (Equal) looks for missing")] for note in load(path).notes] == noted  # fmt: skip
