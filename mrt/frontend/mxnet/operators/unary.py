"""Functions of one tensor, element by element. Where ONNX has no such function, it is written with those it has.

The halfway cases of round and rint are MXNet's own: both differ from ONNX's Round, which takes them to even.
"""

from __future__ import annotations

import math

import onnx_ir as ir

from mrt.frontend.mxnet.operator_call import OperatorCall
from mrt.frontend.mxnet.operators.registry import Handler, operator, real

PLAIN = {
    "relu": "Relu", "sigmoid": "Sigmoid", "tanh": "Tanh", "exp": "Exp", "log": "Log", "sqrt": "Sqrt", "abs": "Abs",
    "negative": "Neg", "erf": "Erf", "floor": "Floor", "ceil": "Ceil", "sign": "Sign", "softsign": "Softsign",
    "reciprocal": "Reciprocal", "sin": "Sin", "cos": "Cos", "tan": "Tan", "arcsin": "Asin", "arccos": "Acos",
    "arctan": "Atan", "sinh": "Sinh", "cosh": "Cosh", "arcsinh": "Asinh", "arccosh": "Acosh", "arctanh": "Atanh",
    "_contrib_sign_ste": "Sign",
}  # fmt: skip
TIMES = {"degrees": ("Identity", 180 / math.pi), "radians": ("Identity", math.pi / 180),
         "log2": ("Log", 1 / math.log(2)), "log10": ("Log", 1 / math.log(10))}  # fmt: skip


def _plain(target: str) -> Handler:
    def handler(call: OperatorCall) -> ir.Value:
        return call.add(target, call.data)

    return handler


def _times(target: str, factor: float) -> Handler:
    def handler(call: OperatorCall) -> ir.Value:
        value = call.data if target == "Identity" else call.add(target, call.data)
        return call.add("Mul", value, call.constant(factor))

    return handler


for _name, _target in PLAIN.items():
    operator(_name)(_plain(_target))
for _name, (_target, _factor) in TIMES.items():
    operator(_name)(_times(_target, _factor))


@operator("square")
def square(call: OperatorCall) -> ir.Value:
    """x * x."""
    return call.add("Mul", call.data, call.data)


@operator("rsqrt")
def rsqrt(call: OperatorCall) -> ir.Value:
    """1 / sqrt(x)."""
    return call.add("Reciprocal", call.add("Sqrt", call.data))


def _cube_root(call: OperatorCall) -> ir.Value:
    """The root of |x| with the sign of x: Pow knows no third root of a negative number."""
    root = call.add("Pow", call.add("Abs", call.data), call.constant(1 / 3))
    return call.add("Mul", call.add("Sign", call.data), root)


@operator("cbrt")
def cbrt(call: OperatorCall) -> ir.Value:
    """The third root, of negative numbers too."""
    return _cube_root(call)


@operator("rcbrt")
def rcbrt(call: OperatorCall) -> ir.Value:
    """1 / cbrt(x)."""
    return call.add("Reciprocal", _cube_root(call))


@operator("expm1")
def expm1(call: OperatorCall) -> ir.Value:
    """exp(x) - 1, near 0 to the precision of 1."""
    return call.add("Sub", call.add("Exp", call.data), call.constant(1.0))


@operator("log1p")
def log1p(call: OperatorCall) -> ir.Value:
    """log(1 + x), near 0 to the precision of 1."""
    return call.add("Log", call.add("Add", call.data, call.constant(1.0)))


@operator("fix", "trunc")
def trunc(call: OperatorCall) -> ir.Value:
    """Toward 0, at any magnitude: sign(x) * floor(|x|)."""
    whole = call.add("Floor", call.add("Abs", call.data))
    return call.add("Mul", call.add("Sign", call.data), whole)


@operator("round", "_contrib_round_ste")
def round_away(call: OperatorCall) -> ir.Value:
    """To the nearest, halfway away from 0: the floor of |x|, and one more if twice what is beyond it reaches 1."""
    magnitude = call.add("Abs", call.data)
    whole = call.add("Floor", magnitude)
    beyond = call.add("Sub", magnitude, whole)
    more = call.add("Floor", call.add("Mul", beyond, call.constant(2.0)))
    return call.add("Mul", call.add("Sign", call.data), call.add("Add", whole, more))


@operator("rint")
def rint(call: OperatorCall) -> ir.Value:
    """To the nearest, halfway down: the floor, and one more only if the ceiling is nearer."""
    low, high = call.add("Floor", call.data), call.add("Ceil", call.data)
    below, above = (
        call.add("Sub", call.data, low),
        call.add("Sub", high, call.data),
    )
    nearer = call.add("Relu", call.add("Sign", call.add("Sub", below, above)))
    return call.add("Add", low, nearer)


@operator("hard_sigmoid", attributes={"alpha": real(0.2), "beta": real(0.5)})
def hard_sigmoid(call: OperatorCall) -> ir.Value:
    """clip(alpha * x + beta, 0, 1)."""
    return call.add(
        "HardSigmoid",
        call.data,
        alpha=call.float_attribute("alpha"),
        beta=call.float_attribute("beta"),
    )


@operator("smooth_l1", attributes={"scalar": real(1.0)})
def smooth_l1(call: OperatorCall) -> ir.Value:
    """(s * x)^2 / 2 within 1 / s^2 of 0, |x| - 1 / (2 s^2) outside: the square of what is within, plus what is not."""
    sharpness = call.float_attribute("scalar") ** 2
    magnitude = call.add("Abs", call.data)
    if sharpness == 0:
        return call.add("Mul", magnitude, call.constant(0.0))
    within = call.add("Clip", magnitude, None, call.constant(1 / sharpness))
    curved = call.add(
        "Mul", call.add("Mul", within, within), call.constant(sharpness / 2)
    )
    return call.add("Add", curved, call.add("Sub", magnitude, within))


@operator(
    "_contrib_quadratic", attributes={"a": real(0.0), "b": real(0.0), "c": real(0.0)}
)
def quadratic(call: OperatorCall) -> ir.Value:
    """(a * x + b) * x + c."""
    slope = call.add("Mul", call.data, call.constant(call.float_attribute("a")))
    line = call.add("Add", slope, call.constant(call.float_attribute("b")))
    return call.add(
        "Add",
        call.add("Mul", line, call.data),
        call.constant(call.float_attribute("c")),
    )
