"""Comparisons and logic, with ONNX's booleans cast to MXNet's numbers: 1 for true, 0 for false."""

from __future__ import annotations

import math
from collections.abc import Callable

import onnx
import onnx_ir as ir

from mrt.frontend.mxnet.operator_call import OperatorCall
from mrt.frontend.mxnet.operators.elementwise import (
    Binary,
    require_one_shape,
    scalar,
    scalar_attributes,
)
from mrt.frontend.mxnet.operators.registry import operator

FLOAT, BOOL = onnx.TensorProto.FLOAT, onnx.TensorProto.BOOL

# For each of MXNet's names, ONNX's operator and the name in _GreaterEqualScalar or
# _Greater_Equal.
COMPARISONS = {
    "equal": ("Equal", "Equal"),
    "not_equal": ("NotEqual", "NotEqual"),
    "greater": ("Greater", "Greater"),
    "greater_equal": ("GreaterOrEqual", "GreaterEqual"),
    "lesser": ("Less", "Lesser"),
    "lesser_equal": ("LessOrEqual", "LesserEqual"),
}
LOGIC = {
    "logical_and": ("And", "LogicalAnd"),
    "logical_or": ("Or", "LogicalOr"),
    "logical_xor": ("Xor", "LogicalXor"),
}


def as_number(call: OperatorCall, value: ir.Value) -> ir.Value:
    """Write 1 for true, 0 for false."""
    return call.add("Cast", value, to=FLOAT)


def as_boolean(call: OperatorCall, value: ir.Value) -> ir.Value:
    """Write true where a number is not 0."""
    return call.add("Cast", value, to=BOOL)


def _compare(target: str) -> Binary:
    def add(call: OperatorCall, left: ir.Value, right: ir.Value) -> ir.Value:
        if target == "NotEqual":
            equal = call.add("Equal", left, right)
            return as_number(call, call.add("Not", equal))
        return as_number(call, call.add(target, left, right))

    return add


def _combine(target: str) -> Binary:
    def add(call: OperatorCall, left: ir.Value, right: ir.Value) -> ir.Value:
        left_boolean = as_boolean(call, left)
        right_boolean = as_boolean(call, right)
        return as_number(call, call.add(target, left_boolean, right_boolean))

    return add


def _register(word: str, camel: str, binary: Binary) -> None:
    def same_shape(call: OperatorCall) -> ir.Value:
        require_one_shape(call)
        return binary(call, *call.inputs)

    def broadcast(call: OperatorCall) -> ir.Value:
        return binary(call, *call.inputs)

    def with_number(call: OperatorCall) -> ir.Value:
        return binary(call, call.data, call.constant(scalar(call)))

    parts = "".join(
        "_" + letter if letter.isupper() else letter for letter in camel
    )  # _Greater_Equal
    operator(f"_{word}", parts, slots=("lhs", "rhs"))(same_shape)
    operator(f"broadcast_{word}", slots=("lhs", "rhs"))(broadcast)
    operator(
        f"_{word}_scalar", f"_{camel}Scalar", attributes=scalar_attributes()
    )(with_number)


def _register_all(
    table: dict[str, tuple[str, str]], make: Callable[[str], Binary]
) -> None:
    for choice, (target, camel) in table.items():
        _register(choice, camel, make(target))


_register_all(COMPARISONS, _compare)
_register_all(LOGIC, _combine)


@operator("logical_not")
def logical_not(call: OperatorCall) -> ir.Value:
    """Write 1 where the input is 0, else 0."""
    return as_number(call, call.add("Equal", call.data, call.constant(0.0)))


@operator("where", slots=("condition", "x", "y"))
def where(call: OperatorCall) -> ir.Value:
    """Write x where the condition is not 0, else y; a condition of one axis selects rows."""
    condition, x, y = call.inputs
    shape = call.shape(x)
    call.require(
        shape == call.shape(y),
        f"shapes {shape} and {call.shape(y)} of x and y differ",
    )
    condition_shape = call.shape(condition)
    selects_rows = (
        condition_shape != shape
        and condition_shape[:1] == shape[:1]
        and math.prod(condition_shape) == condition_shape[0]
    )
    call.require(
        condition_shape == shape or selects_rows,
        f"a condition of shape {condition_shape} for {shape}; expected {shape} or {shape[:1]}",
    )
    boolean = as_boolean(call, condition)
    if selects_rows:
        boolean = call.reshape(
            boolean, [condition_shape[0]] + [1] * (len(shape) - 1)
        )
    return call.add("Where", boolean, x, y)
