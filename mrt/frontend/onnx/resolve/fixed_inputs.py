"""Turn inputs into constants whose numbers the user gives.

Such inputs are settings rather than data: a sample rate, a threshold.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx_ir as ir

from mrt.errors import BadModel
from mrt.frontend.onnx.read.read import add_note
from mrt.frontend.onnx.resolve.inputs import Shapes, stated_shape
from mrt.frontend.onnx.resolve.known_values import LARGEST
from mrt.graph.open_shapes import Shape, Sizes, is_open_inside
from mrt.graph.values import Array

Values = Mapping[str, float]
EXACT = 2**53  # up to this, every integer is a float64


def fix_values(model: ir.Model, values: Values, shapes: Shapes) -> Shapes:
    """Make each input in `values` a constant that has this number in every element.

    Return the shapes that the other inputs still need.
    """
    graph = model.graph
    inputs = {value.name or "": value for value in graph.inputs}
    for name, number in values.items():
        if name not in inputs:
            raise BadModel(
                f"--value {name}: the model has no input of that name; "
                f"it has {', '.join(inputs) or 'none'}"
            )
        value = inputs[name]
        shape = _shape(value, shapes.get(name))
        array = np.full(shape, _checked(value, number))
        _make_constant(graph, value, array)
        add_note(
            model,
            f"input '{name}' is {number:g} for good, by --value: "
            "the program does not ask for it",
        )
    if values and inputs.keys() <= values.keys():
        raise BadModel("--value: no input is left; at least one must stay open")
    return {name: shape for name, shape in shapes.items() if name not in values}


def _make_constant(graph: ir.Graph, value: ir.Value, array: Array) -> None:
    graph.inputs.remove(value)
    value.const_value = ir.tensor(array, name=value.name)
    value.shape = ir.Shape(array.shape)
    graph.register_initializer(value)


def _shape(value: ir.Value, user_shape: Shape | None) -> Shape:
    """Return the shape that `fix_inputs` would fix: an unknown first dimension is 1."""
    stated = stated_shape(value)
    shape = user_shape or _with_first_dimension(stated)
    if shape is None or not _fits(shape, stated):
        rank = "" if stated is None else f", {len(stated)} dimensions"
        raise BadModel(
            f"--value {value.name}: its shape is not known; "
            f"add --shape {value.name}=...{rank}"
        )
    size = math.prod(shape)
    if size > LARGEST:
        raise BadModel(
            f"--value {value.name}: {size} elements; "
            f"at most {LARGEST} are filled with one number"
        )
    return shape


def _with_first_dimension(stated: Sizes) -> Shape | None:
    if stated is None or is_open_inside(stated):
        return None
    return tuple(size or 1 for size in stated)


def _fits(shape: Shape, stated: Sizes) -> bool:
    if stated is not None and len(shape) != len(stated):
        return False
    return min(shape, default=1) >= 1


def _checked(value: ir.Value, number: float) -> np.generic:
    """Return the number in the input's type, if that can hold it."""
    kind = value.dtype or ir.DataType.UNDEFINED
    try:
        dtype = np.dtype(kind.numpy())
    except TypeError:
        raise BadModel(
            f"--value {value.name}: the input is of element type {int(kind)}; "
            "expected one of numbers"
        ) from None
    if not _can_hold(dtype, number):
        raise BadModel(
            f"--value {value.name}={number:g}: the input is {kind.name.lower()}, "
            "which cannot hold this number"
        )
    held: np.generic = dtype.type(number)
    return held


def _can_hold(dtype: np.dtype[Any], number: float) -> bool:
    low, high = _interval(dtype)
    if not low <= number <= high:
        return False
    if dtype.kind != "f" and number != math.floor(number):
        return False
    return not number or bool(
        dtype.type(number)
    )  # a float too small for the type would become 0


def _interval(dtype: np.dtype[Any]) -> tuple[float, float]:
    """Return the least and the greatest number of a type of numbers.

    The interval of any other type is empty.
    """
    if dtype.kind == "f":
        limits = np.finfo(dtype)
        return float(limits.min), float(limits.max)
    if dtype.kind in "iu":
        integers = np.iinfo(dtype)
        low = max(int(integers.min), -EXACT)
        high = min(int(integers.max), EXACT)
        return low, high
    if dtype.kind == "b":
        return 0, 1
    return 1, 0
