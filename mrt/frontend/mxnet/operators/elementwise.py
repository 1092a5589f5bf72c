"""Element by element: functions of one tensor, arithmetic of two, arithmetic with a number."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import onnx_ir as ir

from mrt.frontend.mxnet.call import Call
from mrt.frontend.mxnet.operators.registry import Handler, Values, bound, count, ignored, operator, real, word

UNARY = {
    "relu": "Relu", "sigmoid": "Sigmoid", "tanh": "Tanh", "exp": "Exp", "log": "Log", "sqrt": "Sqrt", "abs": "Abs",
    "negative": "Neg", "erf": "Erf", "floor": "Floor", "ceil": "Ceil", "sign": "Sign",
    "softsign": "Softsign", "reciprocal": "Reciprocal",
}  # fmt: skip
SAME_SHAPE = {
    "Add": ("elemwise_add", "_add", "_plus", "_Plus", "_grad_add"),
    "Sub": ("elemwise_sub", "_sub", "_minus", "_Minus"),
    "Mul": ("elemwise_mul", "_mul", "_Mul"),
    "Div": ("elemwise_div", "_div", "_Div"),
    "Max": ("_maximum", "_Maximum"),
    "Min": ("_minimum", "_Minimum"),
    "Pow": ("_power", "_Power"),
}
BROADCAST = {
    "Add": ("broadcast_add", "broadcast_plus"),
    "Sub": ("broadcast_sub", "broadcast_minus"),
    "Mul": ("broadcast_mul",),
    "Div": ("broadcast_div",),
    "Max": ("broadcast_maximum",),
    "Min": ("broadcast_minimum",),
    "Pow": ("broadcast_power",),
}
SCALAR = {
    "Add": ("_plus_scalar", "_PlusScalar"),
    "Sub": ("_minus_scalar", "_MinusScalar"),
    "Mul": ("_mul_scalar", "_MulScalar"),
    "Div": ("_div_scalar", "_DivScalar"),
    "Pow": ("_power_scalar", "_PowerScalar"),
    "Max": ("_maximum_scalar", "_MaximumScalar"),
    "Min": ("_minimum_scalar", "_MinimumScalar"),
}
REVERSED_SCALAR = {
    "Sub": ("_rminus_scalar", "_RMinusScalar"),
    "Div": ("_rdiv_scalar", "_RDivScalar"),
    "Pow": ("_rpower_scalar", "_RPowerScalar"),
}
ANY_FLOAT = 3.4028234663852886e38


def _unary(target: str) -> Handler:
    def handler(call: Call) -> ir.Value:
        return call.emit(target, [call.data])

    return handler


def _same_shape(target: str) -> Handler:
    def handler(call: Call) -> ir.Value:
        left, right = (call.shape(value) for value in call.inputs)
        call.require(left == right, f"shapes {left} and {right} differ")
        return call.emit(target, call.inputs)

    return handler


def _broadcast(target: str) -> Handler:
    def handler(call: Call) -> ir.Value:
        return call.emit(target, call.inputs)

    return handler


def _scalar(target: str) -> Handler:
    def handler(call: Call) -> ir.Value:
        return call.emit(target, [call.data, call.constant(_number(call))])

    return handler


def _reversed_scalar(target: str) -> Handler:
    def handler(call: Call) -> ir.Value:
        return call.emit(target, [call.constant(_number(call)), call.data])

    return handler


def _number(call: Call) -> float:
    number = call.real("scalar")
    call.require(abs(number) <= ANY_FLOAT, f"scalar={number} does not fit float32")
    return number


def _register(table: Mapping[str, tuple[str, ...]], make: Callable[[str], Handler], *, scalar: bool) -> None:
    for target, names in table.items():
        if scalar:
            operator(*names, attributes={"scalar": real(), **ignored("is_int")})(make(target))
        else:
            operator(*names, slots=("lhs", "rhs"))(make(target))


for _name, _target in UNARY.items():
    operator(_name)(_unary(_target))
_register(SAME_SHAPE, _same_shape, scalar=False)
_register(BROADCAST, _broadcast, scalar=False)
_register(SCALAR, _scalar, scalar=True)
_register(REVERSED_SCALAR, _reversed_scalar, scalar=True)


@operator("square")
def square(call: Call) -> ir.Value:
    """x * x."""
    return call.emit("Mul", [call.data, call.data])


@operator("rsqrt")
def rsqrt(call: Call) -> ir.Value:
    """1 / sqrt(x)."""
    return call.emit("Reciprocal", [call.emit("Sqrt", [call.data])])


@operator("hard_sigmoid", attributes={"alpha": real(0.2), "beta": real(0.5)})
def hard_sigmoid(call: Call) -> ir.Value:
    """clip(alpha * x + beta, 0, 1)."""
    return call.emit("HardSigmoid", [call.data], {"alpha": call.real("alpha"), "beta": call.real("beta")})


@operator("clip", attributes={"a_min": bound(), "a_max": bound()})
def clip(call: Call) -> ir.Value:
    """Clip; an infinite bound is left out."""
    low, high = call.real("a_min"), call.real("a_max")
    call.require(low <= high, f"a_min={low} is above a_max={high}")
    bounds = [None if math.isinf(number) else call.constant(number) for number in (low, high)]
    return call.emit("Clip", [call.data, *bounds])


def _all_inputs(values: Values) -> tuple[str, ...]:
    number = values["num_args"]
    assert isinstance(number, int)
    return ("data",) * number


@operator("add_n", "ElementWiseSum", attributes={"num_args": count()}, slots=_all_inputs)
def add_n(call: Call) -> ir.Value:
    """A sum of tensors of one shape, from the first to the last."""
    shapes = {call.shape(value) for value in call.inputs}
    call.require(len(shapes) == 1, f"shapes {sorted(shapes)} differ")
    if len(call.inputs) == 1:
        return call.emit("Identity", call.inputs)
    total = call.data
    for value in call.inputs[1:]:
        total = call.emit("Add", [total, value])
    return total


@operator("identity", "_copy", "BlockGrad", "stop_gradient", "make_loss")
def identity(call: Call) -> ir.Value:
    """The input."""
    return call.emit("Identity", [call.data])


@operator("Cast", "cast", "amp_cast", attributes={"dtype": word("float32", required=True)})
def cast(call: Call) -> ir.Value:
    """Everything is float32 already; other dtypes are not supported."""
    return call.emit("Identity", [call.data])
