"""Element-wise arithmetic: of two tensors, of one shape or broadcast, and with a number."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import onnx_ir as ir

from mrt.frontend.mxnet import integer_dtypes
from mrt.frontend.mxnet.literals import LARGEST_FLOAT
from mrt.frontend.mxnet.operator_call import OperatorCall
from mrt.frontend.mxnet.operators.registry import (
    Attribute,
    Handler,
    all_inputs,
    bound,
    count,
    ignored,
    operator,
    real,
)

Binary = Callable[[OperatorCall, ir.Value, ir.Value], ir.Value]

SAME_SHAPE = {
    "Add": ("elemwise_add", "_add", "_plus", "_Plus", "_grad_add"),
    "Sub": ("elemwise_sub", "_sub", "_minus", "_Minus"),
    "Mul": ("elemwise_mul", "_mul", "_Mul"),
    "Div": ("elemwise_div", "_div", "_Div", "_scatter_elemwise_div"),
    "Mod": ("_mod", "_Mod"),
    "Max": ("_maximum", "_Maximum"),
    "Min": ("_minimum", "_Minimum"),
    "Pow": ("_power", "_Power"),
    "Hypot": ("_hypot", "_Hypot"),
}
BROADCAST = {
    "Add": ("broadcast_add", "broadcast_plus"),
    "Sub": ("broadcast_sub", "broadcast_minus"),
    "Mul": ("broadcast_mul",),
    "Div": ("broadcast_div",),
    "Mod": ("broadcast_mod",),
    "Max": ("broadcast_maximum",),
    "Min": ("broadcast_minimum",),
    "Pow": ("broadcast_power",),
    "Hypot": ("broadcast_hypot",),
}
SCALAR = {
    "Add": ("_plus_scalar", "_PlusScalar", "_scatter_plus_scalar"),
    "Sub": ("_minus_scalar", "_MinusScalar", "_scatter_minus_scalar"),
    "Mul": ("_mul_scalar", "_MulScalar"),
    "Div": ("_div_scalar", "_DivScalar"),
    "Mod": ("_mod_scalar", "_ModScalar"),
    "Max": ("_maximum_scalar", "_MaximumScalar"),
    "Min": ("_minimum_scalar", "_MinimumScalar"),
    "Pow": ("_power_scalar", "_PowerScalar"),
    "Hypot": ("_hypot_scalar", "_HypotScalar"),
}
REVERSED_SCALAR = {
    "Sub": ("_rminus_scalar", "_RMinusScalar"),
    "Div": ("_rdiv_scalar", "_RDivScalar"),
    "Mod": ("_rmod_scalar", "_RModScalar"),
    "Pow": ("_rpower_scalar", "_RPowerScalar"),
}


def scalar_attributes() -> dict[str, Attribute]:
    """Declare the number, 1 by default; is_int only records how it was written."""
    return {"scalar": real(1.0), **ignored("is_int")}


def scalar(call: OperatorCall) -> float:
    """Return the number; refuse a fraction beside an integer tensor, where MXNet would drop it."""
    number = call.float_attribute("scalar")
    if dtype := integer_dtypes.dtype_of(call.data):
        call.require(
            number.is_integer(),
            f"scalar={number} with an input that is {dtype}; expected an integer",
        )
    return number


def require_one_shape(call: OperatorCall) -> None:
    """Refuse the node unless both inputs have the same shape."""
    left = call.shape(call.inputs[0])
    right = call.shape(call.inputs[1])
    call.require(left == right, f"shapes {left} and {right} differ")


def _modulo(call: OperatorCall, left: ir.Value, right: ir.Value) -> ir.Value:
    """Write the remainder with the sign of the divisor, and 0 where the divisor is 0.

    ONNX's remainder of floats (fmod=1) has the sign of the dividend.
    """
    if _are_integers(left, right):
        return _of_integers(call, "Mod", left, right)
    zero = call.constant(0.0)
    remainder = call.add("Mod", left, right, fmod=1)
    sign = call.add("Sign", remainder)
    product = call.add("Mul", sign, right)
    has_other_sign = call.add("Less", product, zero)
    corrected = call.add("Add", remainder, right)
    result = call.add("Where", has_other_sign, corrected, remainder)
    if _is_nonzero_constant(right):
        return result
    is_zero = call.add("Equal", right, zero)
    return call.add("Where", is_zero, zero, result)


def _of_integers(
    call: OperatorCall, target: str, left: ir.Value, right: ir.Value
) -> ir.Value:
    """Write Div, truncated toward 0, or Mod, with the sign of the divisor, of integers.

    A divisor of 0 counts as 1. MXNet's remainder is the same; for a quotient by 0 it
    stops.
    """
    is_zero = call.add("Equal", right, call.constant(0.0))
    divisor = call.add("Where", is_zero, call.constant(1.0), right)
    dividend_integers = call.add("Cast", left, to=ir.DataType.INT32)
    divisor_integers = call.add("Cast", divisor, to=ir.DataType.INT32)
    result = call.add(target, dividend_integers, divisor_integers)
    return call.add("Cast", result, to=ir.DataType.FLOAT)


def _are_integers(*values: ir.Value) -> bool:
    return any(integer_dtypes.dtype_of(value) for value in values)


def _is_nonzero_constant(value: ir.Value) -> bool:
    tensor = value.const_value
    return tensor is not None and bool(np.all(tensor.numpy()))


def _quotient(call: OperatorCall, left: ir.Value, right: ir.Value) -> ir.Value:
    if not _are_integers(left, right):
        return call.add("Div", left, right)
    if right.const_value is not None:
        call.require(_is_nonzero_constant(right), "a division of integers by 0")
    return _of_integers(call, "Div", left, right)


def _hypot(call: OperatorCall, left: ir.Value, right: ir.Value) -> ir.Value:
    """Write sqrt(l^2 + r^2)."""
    left_square = call.add("Mul", left, left)
    right_square = call.add("Mul", right, right)
    total = call.add("Add", left_square, right_square)
    return call.add("Sqrt", total)


def _binary(target: str) -> Binary:
    def add(call: OperatorCall, left: ir.Value, right: ir.Value) -> ir.Value:
        return call.add(target, left, right)

    own_meaning = {"Mod": _modulo, "Div": _quotient, "Hypot": _hypot}
    return own_meaning.get(target, add)


def _same_shape(binary: Binary) -> Handler:
    def handler(call: OperatorCall) -> ir.Value:
        require_one_shape(call)
        left, right = call.inputs
        return binary(call, left, right)

    return handler


def _broadcast(binary: Binary) -> Handler:
    def handler(call: OperatorCall) -> ir.Value:
        left, right = call.inputs
        return binary(call, left, right)

    return handler


def _scalar(binary: Binary) -> Handler:
    def handler(call: OperatorCall) -> ir.Value:
        number = call.constant(scalar(call))
        return binary(call, call.data, number)

    return handler


def _reversed_scalar(binary: Binary) -> Handler:
    def handler(call: OperatorCall) -> ir.Value:
        number = call.constant(scalar(call))
        return binary(call, number, call.data)

    return handler


def _register(
    table: Mapping[str, tuple[str, ...]],
    make: Callable[[Binary], Handler],
    *,
    scalar: bool,
) -> None:
    for target, names in table.items():
        if scalar:
            operator(*names, attributes=scalar_attributes())(
                make(_binary(target))
            )
        else:
            operator(*names, slots=("lhs", "rhs"))(make(_binary(target)))


_register(SAME_SHAPE, _same_shape, scalar=False)
_register(BROADCAST, _broadcast, scalar=False)
_register(SCALAR, _scalar, scalar=True)
_register(REVERSED_SCALAR, _reversed_scalar, scalar=True)


@operator("clip", attributes={"a_min": bound(), "a_max": bound()})
def clip(call: OperatorCall) -> ir.Value:
    """Write a Clip; a bound beyond all float32 numbers is left out."""
    low = call.float_attribute("a_min")
    high = call.float_attribute("a_max")
    call.require(low <= high, f"a_min={low} is above a_max={high}")
    return call.add("Clip", call.data, _bound(call, low), _bound(call, high))


def _bound(call: OperatorCall, number: float) -> ir.Value | None:
    if abs(number) > LARGEST_FLOAT:
        return None
    return call.constant(number)


@operator(
    "add_n",
    "ElementWiseSum",
    attributes={"num_args": count()},
    slots=all_inputs,
)
def add_n(call: OperatorCall) -> ir.Value:
    """Write the sum of tensors of one shape, added from the first to the last."""
    shapes = {call.shape(value) for value in call.inputs}
    call.require(len(shapes) == 1, f"shapes {sorted(shapes)} differ")
    if len(call.inputs) == 1:
        return call.add("Identity", *call.inputs)
    total = call.data
    for value in call.inputs[1:]:
        total = call.add("Add", total, value)
    return total


@operator(
    "identity", "_copy", "_copyto", "BlockGrad", "stop_gradient", "make_loss"
)
def identity(call: OperatorCall) -> ir.Value:
    """Return the input."""
    return call.add("Identity", call.data)


@operator("_contrib_gradientmultiplier", attributes=scalar_attributes())
def gradient_multiplier(call: OperatorCall) -> ir.Value:
    """Return the input: the number multiplies only its gradient."""
    return call.add("Identity", call.data)


@operator("_identity_with_attr_like_rhs", slots=("lhs", "rhs"))
def identity_like(call: OperatorCall) -> ir.Value:
    """Return the first input, which has the shape of the second."""
    require_one_shape(call)
    return call.add("Identity", call.data)
