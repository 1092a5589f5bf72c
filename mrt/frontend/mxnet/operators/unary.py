"""Functions of one tensor, element by element. Where ONNX has no such function, it is written with those it has.

The halfway cases of round and rint are MXNet's own: both differ from ONNX's Round, which takes them to even.
"""

from __future__ import annotations

import math

import onnx_ir as ir

from mrt.frontend.mxnet.call import Call
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
    def handler(call: Call) -> ir.Value:
        return call.emit(target, [call.data])

    return handler


def _times(target: str, factor: float) -> Handler:
    def handler(call: Call) -> ir.Value:
        value = call.data if target == "Identity" else call.emit(target, [call.data])
        return call.emit("Mul", [value, call.constant(factor)])

    return handler


for _name, _target in PLAIN.items():
    operator(_name)(_plain(_target))
for _name, (_target, _factor) in TIMES.items():
    operator(_name)(_times(_target, _factor))


@operator("square")
def square(call: Call) -> ir.Value:
    """x * x."""
    return call.emit("Mul", [call.data, call.data])


@operator("rsqrt")
def rsqrt(call: Call) -> ir.Value:
    """1 / sqrt(x)."""
    return call.emit("Reciprocal", [call.emit("Sqrt", [call.data])])


def _cube_root(call: Call) -> ir.Value:
    """The root of |x| with the sign of x: Pow knows no third root of a negative number."""
    root = call.emit("Pow", [call.emit("Abs", [call.data]), call.constant(1 / 3)])
    return call.emit("Mul", [call.emit("Sign", [call.data]), root])


@operator("cbrt")
def cbrt(call: Call) -> ir.Value:
    """The third root, of negative numbers too."""
    return _cube_root(call)


@operator("rcbrt")
def rcbrt(call: Call) -> ir.Value:
    """1 / cbrt(x)."""
    return call.emit("Reciprocal", [_cube_root(call)])


@operator("expm1")
def expm1(call: Call) -> ir.Value:
    """exp(x) - 1, near 0 to the precision of 1."""
    return call.emit("Sub", [call.emit("Exp", [call.data]), call.constant(1.0)])


@operator("log1p")
def log1p(call: Call) -> ir.Value:
    """log(1 + x), near 0 to the precision of 1."""
    return call.emit("Log", [call.emit("Add", [call.data, call.constant(1.0)])])


@operator("fix", "trunc")
def trunc(call: Call) -> ir.Value:
    """Toward 0, at any magnitude: sign(x) * floor(|x|)."""
    whole = call.emit("Floor", [call.emit("Abs", [call.data])])
    return call.emit("Mul", [call.emit("Sign", [call.data]), whole])


@operator("round", "_contrib_round_ste")
def round_away(call: Call) -> ir.Value:
    """To the nearest, halfway away from 0: the floor of |x|, and one more if twice what is beyond it reaches 1."""
    magnitude = call.emit("Abs", [call.data])
    whole = call.emit("Floor", [magnitude])
    beyond = call.emit("Sub", [magnitude, whole])
    more = call.emit("Floor", [call.emit("Mul", [beyond, call.constant(2.0)])])
    return call.emit(
        "Mul", [call.emit("Sign", [call.data]), call.emit("Add", [whole, more])]
    )


@operator("rint")
def rint(call: Call) -> ir.Value:
    """To the nearest, halfway down: the floor, and one more only if the ceiling is nearer."""
    low, high = call.emit("Floor", [call.data]), call.emit("Ceil", [call.data])
    below, above = (
        call.emit("Sub", [call.data, low]),
        call.emit("Sub", [high, call.data]),
    )
    nearer = call.emit("Relu", [call.emit("Sign", [call.emit("Sub", [below, above])])])
    return call.emit("Add", [low, nearer])


@operator("hard_sigmoid", attributes={"alpha": real(0.2), "beta": real(0.5)})
def hard_sigmoid(call: Call) -> ir.Value:
    """clip(alpha * x + beta, 0, 1)."""
    return call.emit(
        "HardSigmoid",
        [call.data],
        {"alpha": call.real("alpha"), "beta": call.real("beta")},
    )


@operator("smooth_l1", attributes={"scalar": real(1.0)})
def smooth_l1(call: Call) -> ir.Value:
    """(s * x)^2 / 2 within 1 / s^2 of 0, |x| - 1 / (2 s^2) outside: the square of what is within, plus what is not."""
    sharpness = call.real("scalar") ** 2
    magnitude = call.emit("Abs", [call.data])
    if sharpness == 0:
        return call.emit("Mul", [magnitude, call.constant(0.0)])
    within = call.emit("Clip", [magnitude, None, call.constant(1 / sharpness)])
    curved = call.emit(
        "Mul", [call.emit("Mul", [within, within]), call.constant(sharpness / 2)]
    )
    return call.emit("Add", [curved, call.emit("Sub", [magnitude, within])])


@operator(
    "_contrib_quadratic", attributes={"a": real(0.0), "b": real(0.0), "c": real(0.0)}
)
def quadratic(call: Call) -> ir.Value:
    """(a * x + b) * x + c."""
    slope = call.emit("Mul", [call.data, call.constant(call.real("a"))])
    line = call.emit("Add", [slope, call.constant(call.real("b"))])
    return call.emit(
        "Add", [call.emit("Mul", [line, call.data]), call.constant(call.real("c"))]
    )
