"""Decompose operators of ai.onnx.ml, as scikit-learn's models have them, into tensor operators."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import onnx
from onnx import helper

from mrt.frontend.onnx.ml.features import (
    constant,
    decompose_binarizer,
    decompose_imputer,
    decompose_label_encoder,
    decompose_normalizer,
    decompose_one_hot,
    decompose_vectorizer,
    refuse,
    word,
)
from mrt.frontend.onnx.ml.support_vectors import (
    decompose_classifier,
    decompose_regressor,
)
from mrt.frontend.onnx.ml.tree_ensemble import read_ensemble
from mrt.frontend.onnx.ml.tree_groups import groups_of
from mrt.frontend.onnx.ml.trees import decompose_trees, read_trees
from mrt.frontend.onnx.opsets.proto_patch import ProtoPatch
from mrt.frontend.onnx.read.read import add_note
from mrt.graph.names import Names

DOMAIN = "ai.onnx.ml"
MOST_SHOWN = 20  # the most labels in a note
Attributes = Mapping[str, Any]


def _scaler(patch: ProtoPatch, attributes: Attributes) -> None:
    """Write (x - offset) * scale."""
    centred = patch.add(
        "Sub", patch.x, constant(patch, attributes.get("offset", [0.0]))
    )
    patch.add("Mul", centred, constant(patch, attributes.get("scale", [1.0])))


def _linear(patch: ProtoPatch, attributes: Attributes, rows: int) -> str:
    """Write x @ coefficients.T + intercepts."""
    weights = np.array(attributes.get("coefficients", ()), np.float32)
    if not 1 <= rows <= weights.size or weights.size % rows:
        raise refuse(
            patch.node, f"{weights.size} coefficients for {rows} results"
        )
    bias = np.array(attributes.get("intercepts", np.zeros(rows)), np.float32)
    if bias.size != rows:
        raise refuse(patch.node, f"{bias.size} intercepts for {rows} results")
    w, b = constant(patch, weights.reshape(rows, -1)), constant(patch, bias)
    return patch.add("Gemm", patch.x, w, b, transB=1)


def _regressor(patch: ProtoPatch, attributes: Attributes) -> None:
    if word(attributes, "post_transform", "NONE") != "NONE":
        raise refuse(
            patch.node,
            f"post_transform={word(attributes, 'post_transform', '')}; expected NONE",
        )
    _linear(patch, attributes, int(attributes.get("targets", 1)))


def _classifier(patch: ProtoPatch, attributes: Attributes) -> None:
    """Write the label of the greatest sum, and the sums after the post_transform."""
    labels = _labels(patch, attributes, "classlabels_ints")
    if len(labels) < 2 or len(attributes.get("intercepts", labels)) != len(
        labels
    ):
        raise refuse(
            patch.node,
            f"{len(labels)} labels; expected two or more, and a row of coefficients for each",
        )
    _choose(patch, attributes, _linear(patch, attributes, len(labels)), labels)


def _choose(
    patch: ProtoPatch, attributes: Attributes, sums: str, labels: Sequence[int]
) -> None:
    transform = word(attributes, "post_transform", "NONE")
    functions = {
        "NONE": "Identity",
        "SOFTMAX": "Softmax",
        "LOGISTIC": "Sigmoid",
    }
    if transform not in functions:
        raise refuse(
            patch.node,
            f"post_transform={transform}; expected {', '.join(functions)}",
        )
    patch.add(
        functions[transform],
        sums,
        **({"axis": 1} if transform == "SOFTMAX" else {}),
    )
    patch.added[-1].output[0] = patch.node.output[1]
    places = patch.add("ArgMax", sums, axis=1, keepdims=0)
    patch.add("Gather", constant(patch, labels, np.int64), places, axis=0)


def _columns(patch: ProtoPatch, attributes: Attributes) -> None:
    """Write the tensor itself, whose columns are in the order of the labels.

    ONNX defines a dictionary for each row.
    """
    patch.add("Identity", patch.x)


def _feature_extractor(patch: ProtoPatch, attributes: Attributes) -> None:
    """Gather the columns at these indices.

    A tensor of one axis counts as one row. If x is a list of texts, the result is the
    indices themselves as one row, and a note lists the text of each index.
    """
    texts = patch.texts.get(patch.node.input[0])
    if texts is not None:
        patch.notes.append(_meaning(patch.node.output[0], texts))
        indices = patch.add(
            "Cast", patch.node.input[1], to=onnx.TensorProto.INT64
        )
        patch.add("Reshape", indices, constant(patch, [1, -1], np.int64))
        return
    places = patch.add(
        "Reshape", patch.node.input[1], constant(patch, [-1], np.int64)
    )
    rows = (
        patch.add("Reshape", patch.x, constant(patch, [1, -1], np.int64))
        if patch.node.input[0] in patch.of_one_axis
        else patch.x
    )
    patch.add("Gather", rows, places, axis=1)


def _trees(
    patch: ProtoPatch, attributes: Attributes, role: str, results: int
) -> str:
    trees = read_trees(attributes, role, results)
    if isinstance(trees, str):
        raise refuse(patch.node, trees)
    base = np.array(
        attributes.get("base_values", np.zeros(results)), np.float32
    )
    if base.size != results:
        raise refuse(
            patch.node, f"{base.size} base values for {results} results"
        )
    return decompose_trees(patch, groups_of(trees), base)


def _tree_regressor(patch: ProtoPatch, attributes: Attributes) -> None:
    """Write the sum of the weights of the leaves that a row reaches."""
    for name, expected in (
        ("post_transform", "NONE"),
        ("aggregate_function", "SUM"),
    ):
        if (value := word(attributes, name, expected)) != expected:
            raise refuse(patch.node, f"{name}={value}; expected {expected}")
    results = int(attributes.get("n_targets", 1))
    if results < 1:
        raise refuse(patch.node, f"n_targets={results}; expected 1 or more")
    _trees(patch, attributes, "target", results)


def _tree_ensemble(patch: ProtoPatch, attributes: Attributes) -> None:
    """Write the sum, or the average, of the leaves that a row reaches."""
    ensemble = read_ensemble(attributes)
    if isinstance(ensemble, str):
        raise refuse(patch.node, ensemble)
    trees, results = ensemble
    decompose_trees(patch, groups_of(trees), np.zeros(results, np.float32))


def _tree_classifier(patch: ProtoPatch, attributes: Attributes) -> None:
    """Write the label of the greatest sum, and the sums.

    Two labels can share one sum, which then decides between them.
    """
    labels = _labels(patch, attributes, "classlabels_int64s")
    named = set(attributes.get("class_ids", ()))
    if len(labels) == 2 and len(named) == 1:
        _choose_of_two(patch, attributes, labels)
        return
    if len(labels) < 2 or not named:
        raise refuse(
            patch.node,
            f"{len(labels)} labels and weights for {len(named)} of them; expected two or more",
        )
    _choose(
        patch,
        attributes,
        _trees(patch, attributes, "class", len(labels)),
        labels,
    )


def _choose_of_two(
    patch: ProtoPatch, attributes: Attributes, labels: Sequence[int]
) -> None:
    """Choose between two labels by one sum.

    If no weight is negative, the sum is a share between 0 and 1, and the second label is
    chosen above 0.5; else it is chosen above 0.
    """
    transform = word(attributes, "post_transform", "NONE")
    if transform not in ("NONE", "LOGISTIC"):
        raise refuse(
            patch.node, f"post_transform={transform}; expected NONE or LOGISTIC"
        )
    ids = [0] * len(attributes["class_ids"])
    total = _trees(patch, {**attributes, "class_ids": ids}, "class", 1)
    share = min(attributes.get("class_weights", ()), default=0.0) >= 0
    if transform == "LOGISTIC":
        both = [
            patch.add("Sigmoid", value)
            for value in (patch.add("Neg", total), total)
        ]
    else:
        both = [
            patch.add("Sub", constant(patch, 1.0), total)
            if share
            else patch.add("Neg", total),
            total,
        ]
    patch.add("Concat", *both, axis=1)
    patch.added[-1].output[0] = patch.node.output[1]
    second = patch.add(
        "Cast",
        patch.add("Greater", total, constant(patch, 0.5 if share else 0.0)),
        to=onnx.TensorProto.INT64,
    )
    places = patch.add("Reshape", second, constant(patch, [-1], np.int64))
    patch.add("Gather", constant(patch, labels, np.int64), places, axis=0)


def _labels(
    patch: ProtoPatch, attributes: Attributes, name: str
) -> Sequence[int]:
    """Return the labels; for labels of text, their indices, because a program has only numbers."""
    texts = attributes.get("classlabels_strings", ())
    if not texts:
        return tuple(attributes.get(name, ()))
    patch.notes.append(
        _meaning(
            patch.node.output[0],
            [label.decode(errors="replace") for label in texts],
        )
    )
    return range(len(texts))


def _meaning(output: str, texts: Sequence[str]) -> str:
    shown = ", ".join(
        f"{place} is {text!r}" for place, text in enumerate(texts[:MOST_SHOWN])
    )
    return f"'{output}' is the place of a label: {shown}{', ..' if len(texts) > MOST_SHOWN else ''}"


def _support_vectors(patch: ProtoPatch, attributes: Attributes) -> None:
    decompose_classifier(
        patch, attributes, _labels(patch, attributes, "classlabels_ints")
    )


ANY = 1 << 16  # the most operands

# for each operator, the function that decomposes it and the most operands that it has
ML_OPERATORS: dict[
    str, tuple[Callable[[ProtoPatch, Attributes], None], int]
] = {
    "ArrayFeatureExtractor": (_feature_extractor, 2),
    "Binarizer": (decompose_binarizer, 1),
    "FeatureVectorizer": (decompose_vectorizer, ANY),
    "Imputer": (decompose_imputer, 1),
    "LabelEncoder": (decompose_label_encoder, 1),
    "LinearClassifier": (_classifier, 1),
    "LinearRegressor": (_regressor, 1),
    "Normalizer": (decompose_normalizer, 1),
    "OneHotEncoder": (decompose_one_hot, 1),
    "SVMClassifier": (_support_vectors, 1),
    "SVMRegressor": (decompose_regressor, 1),
    "Scaler": (_scaler, 1),
    "TreeEnsemble": (_tree_ensemble, 1),
    "TreeEnsembleClassifier": (_tree_classifier, 1),
    "TreeEnsembleRegressor": (_tree_regressor, 1),
    "ZipMap": (_columns, 1),
}


def decompose_ml(proto: onnx.ModelProto, opset: int) -> None:
    """Replace the operators of ai.onnx.ml by those of the default domain.

    Others stay, and are refused by name later.
    """
    nodes = proto.graph.node
    if not any(node.domain == DOMAIN for node in nodes):
        return
    names = Names(
        name for node in nodes for name in (*node.input, *node.output)
    )
    initializers = proto.graph.initializer
    texts = {
        tensor.name: _texts(tensor)
        for tensor in initializers
        if _is_text(tensor)
    }
    rows = {tensor.name for tensor in initializers if len(tensor.dims) == 1}
    replaced: list[onnx.NodeProto] = []
    notes: list[str] = []
    for node in nodes:
        if not _is_learned(node):
            replaced.append(onnx.NodeProto.FromString(node.SerializeToString()))
            continue
        patch = ProtoPatch(node, names, rows, opset)
        patch.texts = texts
        attributes = {
            attribute.name: helper.get_attribute_value(attribute)
            for attribute in node.attribute
        }
        ML_OPERATORS[node.op_type][0](patch, attributes)
        replaced += patch.finish()
        notes += patch.notes
    if notes:
        _declare_outputs_as_places(proto)
    for note in notes:
        add_note(proto, note)
    del nodes[:]
    nodes.extend(replaced)
    _remove_unread(proto, set(texts))


def _declare_outputs_as_places(proto: onnx.ModelProto) -> None:
    """Make integers of the outputs that were texts: a label is given by its place."""
    for value in proto.graph.output:
        declared = value.type.tensor_type
        if declared.elem_type == onnx.TensorProto.STRING:
            declared.elem_type = onnx.TensorProto.INT64


def _remove_unread(proto: onnx.ModelProto, names: set[str]) -> None:
    """Remove the initializers of these names that no node reads."""
    read = {name for node in proto.graph.node for name in node.input}
    initializers = proto.graph.initializer
    for tensor in list(initializers):
        if tensor.name in names and tensor.name not in read:
            initializers.remove(tensor)


def _is_text(tensor: onnx.TensorProto) -> bool:
    return tensor.data_type == onnx.TensorProto.STRING and len(tensor.dims) == 1


def _texts(tensor: onnx.TensorProto) -> list[str]:
    return [text.decode(errors="replace") for text in tensor.string_data]


def _is_learned(node: onnx.NodeProto) -> bool:
    """Return whether a node of ai.onnx.ml has the operands and attributes that ONNX declares."""
    if (
        node.domain != DOMAIN
        or node.op_type not in ML_OPERATORS
        or not onnx.defs.has(node.op_type, DOMAIN)
    ):
        return False
    declared = onnx.defs.get_schema(node.op_type, DOMAIN).attributes
    kinds = {
        name: str(attribute.type).rpartition(".")[2]
        for name, attribute in declared.items()
    }
    typed = all(
        kinds.get(a.name) == onnx.AttributeProto.AttributeType.Name(a.type)
        for a in node.attribute
    )
    outputs = 2 if node.op_type.endswith("Classifier") else 1
    names = [*node.input, *node.output]
    most = ML_OPERATORS[node.op_type][1]
    return (
        typed
        and (most == ANY or len(node.input) == most)
        and len(node.output) == outputs
        and all(names)
    )
