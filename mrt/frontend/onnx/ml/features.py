"""Operators of the domain ai.onnx.ml that prepare columns of a table: encoders, imputers, norms, in tensors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx
from onnx import numpy_helper

from mrt.errors import Unsupported
from mrt.frontend.onnx.opsets.proto_patch import ProtoPatch

Attributes = Mapping[str, Any]
WIDEST_TABLE = 1 << 16  # from the least key of a LabelEncoder to the greatest
_TEXT = "text; encode it outside, and begin the model behind it"


def constant(s: ProtoPatch, values: Any, kind: type[np.generic] = np.float32) -> str:
    """A constant of this type."""
    return s.add("Constant", value=numpy_helper.from_array(np.array(values, kind)))


def refuse(node: onnx.NodeProto, trouble: str) -> Unsupported:
    """The error that names a node."""
    return Unsupported([f"{node.name or node.output[0]} ({node.op_type}): {trouble}"])


def word(attributes: Attributes, name: str, default: str) -> str:
    """An attribute that is text."""
    value = attributes.get(name, default)
    return value.decode(errors="replace") if isinstance(value, bytes) else str(value)


def decompose_normalizer(s: ProtoPatch, attributes: Attributes) -> None:
    """Each row by its own norm; by MAX, its greatest number."""
    norms = {"L1": 1, "L2": 2}
    norm = word(attributes, "norm", "MAX")
    if norm == "MAX":
        s.add("Div", s.x, s.reduce("ReduceMax", s.x, axis=1))
    elif norm in norms:
        s.add("LpNormalization", s.x, axis=1, p=norms[norm])
    else:
        raise refuse(s.node, f"norm={norm}; expected L1, L2 or MAX")


def decompose_imputer(s: ProtoPatch, attributes: Attributes) -> None:
    """Another number for one that means a missing one; where that is NaN or infinite, nothing: a program has none."""
    whole = "imputed_value_int64s" in attributes
    kind = np.int64 if whole else np.float32
    values = np.array(
        attributes.get("imputed_value_int64s" if whole else "imputed_value_floats", ()),
        kind,
    )
    missing = attributes.get(
        "replaced_value_int64" if whole else "replaced_value_float", 0
    )
    if not values.size:
        raise refuse(s.node, "it has no values to put in the place of others")
    if not np.isfinite(missing):
        s.add("Identity", s.x)
        return
    hit = s.add("Equal", s.x, constant(s, missing, kind))
    s.add("Where", hit, constant(s, values.reshape(1, -1), kind), s.x)


def decompose_one_hot(s: ProtoPatch, attributes: Attributes) -> None:
    """One more axis, behind: 1 at the place of the category, 0 elsewhere."""
    categories = attributes.get("cats_int64s", ())
    if not categories:
        raise refuse(s.node, f"its categories are {_TEXT}")
    if not attributes.get("zeros", 1):
        raise refuse(
            s.node,
            "zeros=0 stops at an unknown category, which no program can; expected 1",
        )
    number = s.add_axis(s.add("Cast", s.x, to=onnx.TensorProto.INT64))
    hit = s.add("Equal", number, constant(s, categories, np.int64))
    s.add("Cast", hit, to=onnx.TensorProto.FLOAT)


def decompose_binarizer(s: ProtoPatch, attributes: Attributes) -> None:
    """1 above the threshold."""
    hit = s.add("Greater", s.x, constant(s, attributes.get("threshold", 0.0)))
    s.add("Cast", hit, to=onnx.TensorProto.FLOAT)


def decompose_vectorizer(s: ProtoPatch, attributes: Attributes) -> None:
    """Columns side by side."""
    columns = [s.add("Cast", name, to=onnx.TensorProto.FLOAT) for name in s.node.input]
    s.add("Concat", *columns, axis=1)


def decompose_label_encoder(s: ProtoPatch, attributes: Attributes) -> None:
    """A table of the keys and all whole numbers between; the default for every other number."""
    keys, values, default = _pairs(s.node, attributes)
    if keys.size == 0 or keys.size != values.size:
        raise refuse(s.node, f"{keys.size} keys and {values.size} values")
    if not np.all(keys == np.floor(keys)) or np.ptp(keys) > WIDEST_TABLE:
        raise refuse(
            s.node,
            f"keys from {keys.min()} to {keys.max()}; expected whole numbers, {WIDEST_TABLE} in a row",
        )
    low, high = int(keys.min()) - 1, int(keys.max()) + 1
    table = np.full(high - low + 1, default, values.dtype)
    for key, value in zip(
        keys[::-1].tolist(), values[::-1].tolist(), strict=True
    ):  # of equal keys the first counts
        table[int(key) - low] = value
    x = s.add("Cast", s.x, to=onnx.TensorProto.INT64)
    x = s.add(
        "Max", s.add("Min", x, constant(s, high, np.int64)), constant(s, low, np.int64)
    )
    s.add(
        "Gather",
        constant(s, table, table.dtype.type),
        s.add("Sub", x, constant(s, low, np.int64)),
        axis=0,
    )


def _pairs(node: onnx.NodeProto, attributes: Attributes) -> tuple[Any, Any, Any]:
    """Keys, values and the default, which are numbers."""
    found = []
    for role in ("keys", "values"):
        arrays = {"int64s": np.int64, "floats": np.float32}
        names = [name for name in arrays if f"{role}_{name}" in attributes]
        if (
            f"{role}_tensor" in attributes
            and attributes[f"{role}_tensor"].data_type != onnx.TensorProto.STRING
        ):
            array = numpy_helper.to_array(attributes[f"{role}_tensor"]).reshape(-1)
            found.append(
                array.astype(np.int64 if array.dtype.kind in "iu" else np.float32)
            )
        elif names:
            found.append(np.array(attributes[f"{role}_{names[0]}"], arrays[names[0]]))
        else:
            raise refuse(node, f"its {role} are {_TEXT}")
    if "default_tensor" in attributes:
        default = numpy_helper.to_array(attributes["default_tensor"]).reshape(-1)[0]
    else:
        whole = found[1].dtype == np.int64
        default = (
            attributes.get("default_int64", -1)
            if whole
            else attributes.get("default_float", -0.0)
        )
    return found[0], found[1], default
