"""Inputs that are no data but knobs (a sample rate, a threshold) become the constants that a user says."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx
from onnx import numpy_helper

from mrt.errors import BadModel
from mrt.frontend.onnx.read.read import add_note
from mrt.frontend.onnx.resolve.known_values import LARGEST, Shapes

Values = Mapping[str, float]
EXACT = 2**53  # up to which a float says a whole number


def fix_values(
    proto: onnx.ModelProto, values: Values, shapes: Shapes
) -> dict[str, tuple[int, ...]]:
    """Each input in `values` becomes a constant, that number at every place; gives the shapes that others still need."""
    weights = {tensor.name for tensor in proto.graph.initializer}
    inputs = {
        value.name: value for value in proto.graph.input if value.name not in weights
    }
    for name, number in values.items():
        if name not in inputs:
            raise BadModel(
                f"--value {name}: the model has no input of that name; it has {', '.join(inputs) or 'none'}"
            )
        array = np.full(
            _shape(inputs[name], shapes.get(name)), _checked(inputs[name], number)
        )
        proto.graph.initializer.append(numpy_helper.from_array(array, name))
        proto.graph.input.remove(inputs[name])
        add_note(
            proto,
            f"input '{name}' is {number:g} for good, by --value: the program does not ask for it",
        )
    if values and inputs.keys() <= values.keys():
        raise BadModel("--value: no input is left; at least one must stay open")
    return {name: shape for name, shape in shapes.items() if name not in values}


def _shape(
    value: onnx.ValueInfoProto, wanted: tuple[int, ...] | None
) -> tuple[int, ...]:
    """As `fix_inputs` would settle it: an unknown first dimension is 1."""
    dims = [dim.dim_value for dim in value.type.tensor_type.shape.dim]
    stated = value.type.tensor_type.HasField("shape")
    shape = wanted or tuple(
        size if size > 0 or place else 1 for place, size in enumerate(dims)
    )
    if (
        not (wanted or stated)
        or (stated and len(shape) != len(dims))
        or min(shape, default=1) < 1
    ):
        rank = f", {len(dims)} dimensions" if stated else ""
        raise BadModel(
            f"--value {value.name}: its shape is not known; add --shape {value.name}=...{rank}"
        )
    if math.prod(shape) > LARGEST:
        raise BadModel(
            f"--value {value.name}: {math.prod(shape)} elements; at most {LARGEST} are filled with one number"
        )
    return shape


def _checked(value: onnx.ValueInfoProto, number: float) -> np.generic:
    """The number in the input's type, if that can hold it."""
    kind = value.type.tensor_type.elem_type
    try:
        name = onnx.TensorProto.DataType.Name(kind).lower()
        dtype = np.dtype(onnx.helper.tensor_dtype_to_np_dtype(kind))
    except (KeyError, ValueError):
        raise BadModel(
            f"--value {value.name}: the input is of element type {kind}; expected one of numbers"
        ) from None
    low, high = _limits(dtype)
    if (
        not low <= number <= high
        or (dtype.kind != "f" and number != math.floor(number))
        or (number and not dtype.type(number))
    ):
        raise BadModel(
            f"--value {value.name}={number:g}: the input is {name}, which cannot hold this number"
        )
    held: np.generic = dtype.type(number)
    return held


def _limits(dtype: np.dtype[Any]) -> tuple[float, float]:
    """The least and the greatest number; of a type that is none of numbers, in the wrong order."""
    if dtype.kind == "f":
        return float(np.finfo(dtype).min), float(np.finfo(dtype).max)
    if dtype.kind in "iu":
        return max(int(np.iinfo(dtype).min), -EXACT), min(
            int(np.iinfo(dtype).max), EXACT
        )
    return (0, 1) if dtype.kind == "b" else (1, 0)
