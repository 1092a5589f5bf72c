"""Decompose operators of ai.onnx.ml that prepare columns of a table: encoders, imputers, norms."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx
from onnx import numpy_helper

from mrt.errors import Unsupported
from mrt.frontend.onnx.opsets.proto_patch import ProtoPatch

Attributes = Mapping[str, Any]
# The most integers from the least key of a LabelEncoder to the greatest.
WIDEST_TABLE = 1 << 16
_TEXT = "text; encode it outside, and cut the model behind it (onnx.utils.extract_model)"


def constant(
    patch: ProtoPatch, values: Any, kind: type[np.generic] = np.float32
) -> str:
    """Add a constant of this type."""
    return patch.add(
        "Constant", value=numpy_helper.from_array(np.array(values, kind))
    )


def refuse(node: onnx.NodeProto, problem: str) -> Unsupported:
    """Return the error for a node, whose name begins the message."""
    return Unsupported(
        [f"{node.name or node.output[0]} ({node.op_type}): {problem}"]
    )


def word(attributes: Attributes, name: str, default: str) -> str:
    """Return an attribute that is text."""
    value = attributes.get(name, default)
    return (
        value.decode(errors="replace")
        if isinstance(value, bytes)
        else str(value)
    )


def decompose_normalizer(patch: ProtoPatch, attributes: Attributes) -> None:
    """Divide each row by its own norm, which for MAX is its greatest number."""
    norms = {"L1": 1, "L2": 2}
    norm = word(attributes, "norm", "MAX")
    if norm == "MAX":
        patch.add("Div", patch.x, patch.reduce("ReduceMax", patch.x, axis=1))
    elif norm in norms:
        patch.add("LpNormalization", patch.x, axis=1, p=norms[norm])
    else:
        raise refuse(patch.node, f"norm={norm}; expected L1, L2 or MAX")


def decompose_imputer(patch: ProtoPatch, attributes: Attributes) -> None:
    """Replace the number that marks a missing one by another.

    A mark that is NaN or infinite is found where the model computes it; the inputs of a
    program have no such numbers. An infinity of either sign is found.
    """
    dtype: type[np.generic] = np.float32
    values, mark = "imputed_value_floats", "replaced_value_float"
    if "imputed_value_int64s" in attributes:
        dtype = np.int64
        values, mark = "imputed_value_int64s", "replaced_value_int64"
    imputed = np.array(attributes.get(values, ()), dtype)
    missing = attributes.get(mark, 0)
    if not imputed.size:
        raise refuse(
            patch.node, "it has no values to put in the place of others"
        )
    if not np.isfinite(missing):
        is_missing = patch.add(
            "IsNaN" if np.isnan(missing) else "IsInf", patch.x
        )
    else:
        is_missing = patch.add(
            "Equal", patch.x, constant(patch, missing, dtype)
        )
    patch.add(
        "Where",
        is_missing,
        constant(patch, imputed.reshape(1, -1), dtype),
        patch.x,
    )


def decompose_one_hot(patch: ProtoPatch, attributes: Attributes) -> None:
    """Append an axis that is 1 at the position of the category and 0 elsewhere."""
    categories = attributes.get("cats_int64s", ())
    if not categories:
        raise refuse(patch.node, f"its categories are {_TEXT}")
    if not attributes.get("zeros", 1):
        raise refuse(
            patch.node,
            "zeros=0 stops at an unknown category, which no program can; expected 1: "
            "export scikit-learn's OneHotEncoder(handle_unknown='ignore')",
        )
    number = patch.add_axis(
        patch.add("Cast", patch.x, to=onnx.TensorProto.INT64)
    )
    hit = patch.add("Equal", number, constant(patch, categories, np.int64))
    patch.add("Cast", hit, to=onnx.TensorProto.FLOAT)


def decompose_binarizer(patch: ProtoPatch, attributes: Attributes) -> None:
    """Write 1 above the threshold, else 0."""
    hit = patch.add(
        "Greater", patch.x, constant(patch, attributes.get("threshold", 0.0))
    )
    patch.add("Cast", hit, to=onnx.TensorProto.FLOAT)


def decompose_vectorizer(patch: ProtoPatch, attributes: Attributes) -> None:
    """Write all columns side by side."""
    columns = [
        patch.add("Cast", name, to=onnx.TensorProto.FLOAT)
        for name in patch.node.input
    ]
    patch.add("Concat", *columns, axis=1)


def decompose_label_encoder(patch: ProtoPatch, attributes: Attributes) -> None:
    """Look up a table of the keys and all integers between them; other numbers get the default."""
    keys, values, default = _pairs(patch.node, attributes)
    if keys.size == 0 or keys.size != values.size:
        raise refuse(patch.node, f"{keys.size} keys and {values.size} values")
    if not np.all(keys == np.floor(keys)) or np.ptp(keys) > WIDEST_TABLE:
        problem = f"keys from {keys.min()} to {keys.max()}"
        expected = f"expected integers, {WIDEST_TABLE} in a row"
        raise refuse(patch.node, f"{problem}; {expected}")
    # One more entry on each side holds the default.
    low, high = int(keys.min()) - 1, int(keys.max()) + 1
    table = np.full(high - low + 1, default, values.dtype)
    places = keys.astype(np.int64) - low
    for place, value in zip(places[::-1], values[::-1], strict=True):
        table[place] = value  # the first of equal keys is written last
    integers = patch.add("Cast", patch.x, to=onnx.TensorProto.INT64)
    integers = patch.add("Min", integers, constant(patch, high, np.int64))
    integers = patch.add("Max", integers, constant(patch, low, np.int64))
    index = patch.add("Sub", integers, constant(patch, low, np.int64))
    patch.add("Gather", constant(patch, table, table.dtype.type), index, axis=0)


def _pairs(
    node: onnx.NodeProto, attributes: Attributes
) -> tuple[Any, Any, Any]:
    """Return the keys, the values and the default, all of which must be numbers."""
    keys = _numbers(node, attributes, "keys")
    values = _numbers(node, attributes, "values")
    if "default_tensor" in attributes:
        default = numpy_helper.to_array(attributes["default_tensor"]).reshape(
            -1
        )[0]
    elif values.dtype == np.int64:
        default = attributes.get("default_int64", -1)
    else:
        default = attributes.get("default_float", -0.0)
    return keys, values, default


def _numbers(node: onnx.NodeProto, attributes: Attributes, role: str) -> Any:
    """Return the keys or the values, as int64 or float32."""
    tensor = attributes.get(f"{role}_tensor")
    if tensor is not None and tensor.data_type != onnx.TensorProto.STRING:
        array = numpy_helper.to_array(tensor).reshape(-1)
        return array.astype(
            np.int64 if array.dtype.kind in "iu" else np.float32
        )
    if f"{role}_int64s" in attributes:
        return np.array(attributes[f"{role}_int64s"], np.int64)
    if f"{role}_floats" in attributes:
        return np.array(attributes[f"{role}_floats"], np.float32)
    raise refuse(node, f"its {role} are {_TEXT}")
