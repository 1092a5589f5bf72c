"""Element-wise functions of one tensor; those that ONNX lacks are composed of others.

round and rint treat halfway cases as MXNet does: both differ from ONNX's Round, which
rounds half to even.
"""

from __future__ import annotations

import math

import onnx_ir as ir

from mrt.frontend.mxnet.operator_call import OperatorCall
from mrt.frontend.mxnet.operators.registry import Handler, operator, real

RENAMED = {
    "relu": "Relu",
    "sigmoid": "Sigmoid",
    "tanh": "Tanh",
    "exp": "Exp",
    "log": "Log",
    "sqrt": "Sqrt",
    "abs": "Abs",
    "negative": "Neg",
    "erf": "Erf",
    "floor": "Floor",
    "ceil": "Ceil",
    "sign": "Sign",
    "softsign": "Softsign",
    "reciprocal": "Reciprocal",
    "sin": "Sin",
    "cos": "Cos",
    "tan": "Tan",
    "arcsin": "Asin",
    "arccos": "Acos",
    "arctan": "Atan",
    "sinh": "Sinh",
    "cosh": "Cosh",
    "arcsinh": "Asinh",
    "arccosh": "Acosh",
    "arctanh": "Atanh",
    "_contrib_sign_ste": "Sign",
}
# The ONNX operator and the factor of its result.
WITH_FACTOR = {
    "degrees": ("Identity", 180 / math.pi),
    "radians": ("Identity", math.pi / 180),
    "log2": ("Log", 1 / math.log(2)),
    "log10": ("Log", 1 / math.log(10)),
}


def _renamed(target: str) -> Handler:
    def handler(call: OperatorCall) -> ir.Value:
        return call.add(target, call.data)

    return handler


def _with_factor(target: str, factor: float) -> Handler:
    def handler(call: OperatorCall) -> ir.Value:
        value = call.data
        if target != "Identity":
            value = call.add(target, value)
        return call.add("Mul", value, call.constant(factor))

    return handler


for _name, _target in RENAMED.items():
    operator(_name)(_renamed(_target))
for _name, (_target, _factor) in WITH_FACTOR.items():
    operator(_name)(_with_factor(_target, _factor))


@operator("square")
def square(call: OperatorCall) -> ir.Value:
    """Write x * x."""
    return call.add("Mul", call.data, call.data)


@operator("rsqrt")
def rsqrt(call: OperatorCall) -> ir.Value:
    """Write 1 / sqrt(x)."""
    root = call.add("Sqrt", call.data)
    return call.add("Reciprocal", root)


def _cube_root(call: OperatorCall) -> ir.Value:
    """Write sign(x) * |x|^(1/3), because Pow has no cube root of a negative number."""
    magnitude = call.add("Abs", call.data)
    root = call.add("Pow", magnitude, call.constant(1 / 3))
    sign = call.add("Sign", call.data)
    return call.add("Mul", sign, root)


@operator("cbrt")
def cbrt(call: OperatorCall) -> ir.Value:
    """Write the cube root, of negative numbers too."""
    return _cube_root(call)


@operator("rcbrt")
def rcbrt(call: OperatorCall) -> ir.Value:
    """Write 1 / cbrt(x)."""
    root = _cube_root(call)
    return call.add("Reciprocal", root)


@operator("expm1")
def expm1(call: OperatorCall) -> ir.Value:
    """Write exp(x) - 1, which near 0 has only the precision of numbers near 1."""
    exponential = call.add("Exp", call.data)
    return call.add("Sub", exponential, call.constant(1.0))


@operator("log1p")
def log1p(call: OperatorCall) -> ir.Value:
    """Write log(1 + x), which near 0 has only the precision of numbers near 1."""
    increased = call.add("Add", call.data, call.constant(1.0))
    return call.add("Log", increased)


@operator("fix", "trunc")
def trunc(call: OperatorCall) -> ir.Value:
    """Round toward 0, at any magnitude: sign(x) * floor(|x|)."""
    magnitude = call.add("Abs", call.data)
    integer = call.add("Floor", magnitude)
    sign = call.add("Sign", call.data)
    return call.add("Mul", sign, integer)


@operator("round", "_contrib_round_ste")
def round_away(call: OperatorCall) -> ir.Value:
    """Round to the nearest, halfway away from 0.

    The magnitude is floor(|x|), plus 1 where twice the fraction reaches 1.
    """
    magnitude = call.add("Abs", call.data)
    integer = call.add("Floor", magnitude)
    fraction = call.add("Sub", magnitude, integer)
    doubled = call.add("Mul", fraction, call.constant(2.0))
    carry = call.add("Floor", doubled)
    sign = call.add("Sign", call.data)
    rounded = call.add("Add", integer, carry)
    return call.add("Mul", sign, rounded)


@operator("rint")
def rint(call: OperatorCall) -> ir.Value:
    """Round to the nearest, halfway down: the floor, plus 1 where the ceiling is nearer."""
    low = call.add("Floor", call.data)
    high = call.add("Ceil", call.data)
    above_low = call.add("Sub", call.data, low)
    below_high = call.add("Sub", high, call.data)
    difference = call.add("Sub", above_low, below_high)
    sign = call.add("Sign", difference)
    is_high_nearer = call.add("Relu", sign)
    return call.add("Add", low, is_high_nearer)


@operator("hard_sigmoid", attributes={"alpha": real(0.2), "beta": real(0.5)})
def hard_sigmoid(call: OperatorCall) -> ir.Value:
    """Write clip(alpha * x + beta, 0, 1)."""
    alpha = call.float_attribute("alpha")
    beta = call.float_attribute("beta")
    return call.add("HardSigmoid", call.data, alpha=alpha, beta=beta)


@operator("smooth_l1", attributes={"scalar": real(1.0)})
def smooth_l1(call: OperatorCall) -> ir.Value:
    """Write (s * x)^2 / 2 where |x| < 1 / s^2, else |x| - 1 / (2 s^2).

    With c = min(|x|, 1 / s^2) both are s^2 / 2 * c^2 + (|x| - c).
    """
    sharpness = call.float_attribute("scalar") ** 2
    magnitude = call.add("Abs", call.data)
    if sharpness == 0:
        return call.add("Mul", magnitude, call.constant(0.0))
    clipped = call.add("Clip", magnitude, None, call.constant(1 / sharpness))
    squared = call.add("Mul", clipped, clipped)
    curved = call.add("Mul", squared, call.constant(sharpness / 2))
    linear = call.add("Sub", magnitude, clipped)
    return call.add("Add", curved, linear)


@operator(
    "_contrib_quadratic",
    attributes={"a": real(0.0), "b": real(0.0), "c": real(0.0)},
)
def quadratic(call: OperatorCall) -> ir.Value:
    """Write (a * x + b) * x + c."""
    a = call.constant(call.float_attribute("a"))
    slope = call.add("Mul", call.data, a)
    b = call.constant(call.float_attribute("b"))
    line = call.add("Add", slope, b)
    product = call.add("Mul", line, call.data)
    c = call.constant(call.float_attribute("c"))
    return call.add("Add", product, c)
