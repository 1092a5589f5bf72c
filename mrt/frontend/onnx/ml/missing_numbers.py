"""Notes what a model does for missing numbers (NaN) among its inputs, which a program refuses."""

from __future__ import annotations

import math

import onnx_ir as ir

from mrt.frontend.onnx.read.read import add_note

TREES = ("TreeEnsemble", "TreeEnsembleClassifier", "TreeEnsembleRegressor")
_FLOATS = (ir.DataType.FLOAT, ir.DataType.DOUBLE, ir.DataType.FLOAT16)
_BRANCHES = "nodes_missing_value_tracks_true"
_MOVE_OR_SCALE = frozenset(
    {"ArrayFeatureExtractor", "Cast", "Concat", "FeatureVectorizer", "Gather", "Identity", "Reshape", "Scaler", "Slice",
     "Split", "Squeeze", "Transpose", "Unsqueeze"}
)  # fmt: skip


def note_missing_numbers(model: ir.Model) -> None:
    """Note the first node that awaits NaN in an input: it would not be clear before a sample with one comes."""
    for node in model.graph:
        verb = _awaited(node)
        inputs = _inputs_of(node) if verb else []
        if inputs:
            add_note(
                model,
                f"'{node.name or node.outputs[0].name}' ({node.op_type}) {verb} missing numbers (NaN), and a program has none: "
                f"samples with NaN in {', '.join(inputs)} are refused, so fill them in before",
            )
            return


def _awaited(node: ir.Node) -> str:
    """What a node has for NaN; nothing for most."""
    if node.op_type == "IsNaN":
        return "looks for"
    if node.op_type == "Equal" and node.inputs[0] is node.inputs[1]:
        is_float = (
            node.inputs[0] is not None and node.inputs[0].dtype in _FLOATS
        )
        return "looks for" if is_float else ""
    if node.op_type == "Imputer":
        mark = node.attributes.get("replaced_value_float")
        is_nan = mark is not None and math.isnan(mark.as_float())
        return "fills in" if is_nan else ""
    branches = node.attributes.get(_BRANCHES)
    if node.op_type not in TREES or branches is None:
        return ""
    return "has branches for" if any(branches.as_ints()) else ""


def _inputs_of(node: ir.Node) -> list[str]:
    """Return the names of the inputs whose numbers a node reads as they are, or scaled."""
    waiting = list(node.inputs[:1])
    visited = set(waiting)
    names: list[str] = []
    while waiting:
        value = waiting.pop()
        if value is not None and value.is_graph_input():
            names.append(f"'{value.name}'")
        maker = None if value is None else value.producer()
        if maker is not None and maker.op_type in _MOVE_OR_SCALE:
            new = set(maker.inputs) - visited
            visited |= new
            waiting += new
    return sorted(names)
