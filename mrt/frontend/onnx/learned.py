"""Operators of the domain ai.onnx.ml, as scikit-learn's models are exported, spelled out where tensors can say the same."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

from mrt.errors import Unsupported
from mrt.frontend.onnx.experimental import Nodes
from mrt.frontend.onnx.trees import read_trees, spell_trees

DOMAIN = "ai.onnx.ml"
Attributes = Mapping[str, Any]


def _constant(s: Nodes, values: Any, kind: type[np.generic] = np.float32) -> str:
    return s.add("Constant", value=numpy_helper.from_array(np.array(values, kind)))


def _refuse(node: onnx.NodeProto, trouble: str) -> Unsupported:
    return Unsupported([f"{node.name or node.output[0]} ({node.op_type}): {trouble}"])


def _word(attributes: Attributes, name: str, default: str) -> str:
    value = attributes.get(name, default)
    return value.decode(errors="replace") if isinstance(value, bytes) else str(value)


def _scaler(s: Nodes, attributes: Attributes) -> None:
    """(x - offset) * scale."""
    centred = s.add("Sub", s.x, _constant(s, attributes.get("offset", [0.0])))
    s.add("Mul", centred, _constant(s, attributes.get("scale", [1.0])))


def _normalizer(s: Nodes, attributes: Attributes) -> None:
    """Each row by its own norm."""
    norms = {"L1": 1, "L2": 2}
    norm = _word(attributes, "norm", "MAX")
    if norm not in norms:
        raise _refuse(s.node, f"norm={norm}; expected L1 or L2")
    s.add("LpNormalization", s.x, axis=1, p=norms[norm])


def _linear(s: Nodes, attributes: Attributes, rows: int) -> str:
    """x @ coefficients.T + intercepts."""
    weights = np.array(attributes.get("coefficients", ()), np.float32)
    bias = np.array(attributes.get("intercepts", np.zeros(rows)), np.float32)
    if rows < 1 or not weights.size or weights.size % rows or bias.size != rows:
        raise _refuse(s.node, f"{weights.size} coefficients and {bias.size} intercepts for {rows} results")
    w, b = _constant(s, weights.reshape(rows, -1)), _constant(s, bias)
    return s.add("Gemm", s.x, w, b, transB=1)


def _regressor(s: Nodes, attributes: Attributes) -> None:
    if _word(attributes, "post_transform", "NONE") != "NONE":
        raise _refuse(s.node, f"post_transform={_word(attributes, 'post_transform', '')}; expected NONE")
    _linear(s, attributes, int(attributes.get("targets", 1)))


def _classifier(s: Nodes, attributes: Attributes) -> None:
    """The label of the greatest sum, and the sums, or what is made of them."""
    labels = attributes.get("classlabels_ints", ())
    if len(labels) < 2 or len(attributes.get("intercepts", labels)) != len(labels):
        raise _refuse(s.node, "expected two or more labels that are integers, and a row of coefficients for each")
    _choose(s, attributes, _linear(s, attributes, len(labels)), labels)


def _choose(s: Nodes, attributes: Attributes, sums: str, labels: Sequence[int]) -> None:
    transform = _word(attributes, "post_transform", "NONE")
    functions = {"NONE": "Identity", "SOFTMAX": "Softmax", "LOGISTIC": "Sigmoid"}
    if transform not in functions:
        raise _refuse(s.node, f"post_transform={transform}; expected {', '.join(functions)}")
    s.add(functions[transform], sums, **({"axis": 1} if transform == "SOFTMAX" else {}))
    s.made[-1].output[0] = s.node.output[1]
    places = s.add("ArgMax", sums, axis=1, keepdims=0)
    s.add("Gather", _constant(s, labels, np.int64), places, axis=0)


def _columns(s: Nodes, attributes: Attributes) -> None:
    """A dictionary for each row: here the tensor itself, whose columns are in the order of the labels."""
    s.add("Identity", s.x)


def _feature_extractor(s: Nodes, attributes: Attributes) -> None:
    """The columns of these places; of one row, that row of places."""
    places = s.add("Reshape", s.node.input[1], _constant(s, [-1], np.int64))
    rows = s.add("Reshape", s.x, _constant(s, [1, -1], np.int64)) if s.node.input[0] in s.of_one_axis else s.x
    s.add("Gather", rows, places, axis=1)


def _trees(s: Nodes, attributes: Attributes, role: str, results: int) -> str:
    base = np.array(attributes.get("base_values", np.zeros(results)), np.float32)
    found = read_trees(attributes, role, results)
    if isinstance(found, str) or base.size != results:
        raise _refuse(s.node, found if isinstance(found, str) else f"{base.size} base values for {results} results")
    return spell_trees(s, found, base)


def _tree_regressor(s: Nodes, attributes: Attributes) -> None:
    """The sum of what the leaves say."""
    for name, expected in (("post_transform", "NONE"), ("aggregate_function", "SUM")):
        if (word := _word(attributes, name, expected)) != expected:
            raise _refuse(s.node, f"{name}={word}; expected {expected}")
    _trees(s, attributes, "target", int(attributes.get("n_targets", 1)))


def _tree_classifier(s: Nodes, attributes: Attributes) -> None:
    """The label of the greatest sum, and the sums."""
    labels, named = attributes.get("classlabels_int64s", ()), set(attributes.get("class_ids", ()))
    if len(labels) < 2 or len(named) < 2:
        raise _refuse(s.node, "expected two or more labels that are integers, and weights for more than one of them")
    _choose(s, attributes, _trees(s, attributes, "class", len(labels)), labels)


LEARNED: dict[str, tuple[Callable[[Nodes, Attributes], None], int]] = {
    "ArrayFeatureExtractor": (_feature_extractor, 2),
    "LinearClassifier": (_classifier, 1),
    "LinearRegressor": (_regressor, 1),
    "Normalizer": (_normalizer, 1),
    "Scaler": (_scaler, 1),
    "TreeEnsembleClassifier": (_tree_classifier, 1),
    "TreeEnsembleRegressor": (_tree_regressor, 1),
    "ZipMap": (_columns, 1),
}


def spell_learned(proto: onnx.ModelProto) -> None:
    """Replace them by operators of the default domain; what is left is refused by its name."""
    nodes = proto.graph.node
    if not any(node.domain == DOMAIN for node in nodes):
        return
    taken = {name for node in nodes for name in (*node.input, *node.output)}
    rows = {tensor.name for tensor in proto.graph.initializer if len(tensor.dims) == 1}
    spelled: list[onnx.NodeProto] = []
    for node in nodes:
        if not _is_learned(node):
            spelled.append(onnx.NodeProto.FromString(node.SerializeToString()))
            continue
        one = Nodes(node, taken, rows)
        LEARNED[node.op_type][0](one, {item.name: helper.get_attribute_value(item) for item in node.attribute})
        spelled += one.finish()
    zipped = {name for node in nodes if node.op_type == "ZipMap" and node.domain == DOMAIN for name in node.output}
    for value in proto.graph.output:
        if value.name in zipped:
            value.type.tensor_type.elem_type = onnx.TensorProto.FLOAT
    del nodes[:]
    nodes.extend(spelled)


def _is_learned(node: onnx.NodeProto) -> bool:
    """Of the operands and attributes that ONNX declares for it."""
    if node.domain != DOMAIN or node.op_type not in LEARNED or not onnx.defs.has(node.op_type, DOMAIN):
        return False
    declared = onnx.defs.get_schema(node.op_type, DOMAIN).attributes
    kinds = {name: str(attribute.type).rpartition(".")[2] for name, attribute in declared.items()}
    typed = all(kinds.get(a.name) == onnx.AttributeProto.AttributeType.Name(a.type) for a in node.attribute)
    outputs = 2 if node.op_type.endswith("Classifier") else 1
    names = [*node.input, *node.output]
    return typed and len(node.input) == LEARNED[node.op_type][1] and len(node.output) == outputs and all(names)
