"""Computes functions of one real number in decimal, to 34 digits.

The digits are the same on every machine, unlike the last bit of a C library. A result
that is not defined (log or sqrt below 0, 0/0) is NaN.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal

import onnx_ir as ir

from mrt.exact import trigonometry
from mrt.exact.precision import (
    HALF,
    ONE,
    PI,
    PRECISION,
    TWO,
    ZERO,
    add,
    divide,
    exp,
    multiply,
    subtract,
)

ERF_LIMIT = Decimal(8)  # 1 - erf(8) < 10^-28
ERF_TOLERANCE = Decimal("1e-30")
TWO_OVER_ROOT_PI = PRECISION.divide(TWO, PRECISION.sqrt(PI))


def sigmoid(x: Decimal) -> Decimal:
    """1 / (1 + e^-x)."""
    return divide(ONE, add(ONE, exp(x.copy_negate())))


def tanh(x: Decimal) -> Decimal:
    """1 - 2 / (e^2x + 1)."""
    return subtract(ONE, divide(TWO, add(exp(multiply(TWO, x)), ONE)))


def softplus(x: Decimal) -> Decimal:
    """ln(1 + e^x)."""
    return x if x > 1000 else PRECISION.ln(add(ONE, exp(x)))


def erf(x: Decimal) -> Decimal:
    """2/sqrt(pi) * e^(-x^2) * sum of 2^n x^(2n+1) / (1 * 3 * .. * (2n+1)).

    All terms have one sign, so nothing cancels.
    """
    if x.copy_abs() > ERF_LIMIT:
        return ONE.copy_sign(x)
    doubled = multiply(TWO, multiply(x, x))
    term = total = x
    n = 1
    while term.copy_abs() > multiply(total.copy_abs(), ERF_TOLERANCE):
        n += 2
        term = divide(multiply(term, doubled), Decimal(n))
        total = add(total, term)
    gaussian = exp(divide(doubled, Decimal(-2)))
    return multiply(multiply(TWO_OVER_ROOT_PI, gaussian), total)


def gelu(x: Decimal, approximate: str) -> Decimal:
    """x * (1 + erf(x / sqrt 2)) / 2, or its tanh form."""
    if approximate == "tanh":
        cube = multiply(x, multiply(x, x))
        cubic = add(x, multiply(Decimal("0.044715"), cube))
        curve = tanh(multiply(PRECISION.sqrt(divide(TWO, PI)), cubic))
    else:
        curve = erf(divide(x, PRECISION.sqrt(TWO)))
    return multiply(multiply(HALF, x), add(ONE, curve))


def elu(x: Decimal, alpha: Decimal) -> Decimal:
    """x above 0, alpha * (e^x - 1) below."""
    return x if x >= 0 else multiply(alpha, subtract(exp(x), ONE))


def celu(x: Decimal, alpha: Decimal) -> Decimal:
    """x above 0, alpha * (e^(x/alpha) - 1) below."""
    return (
        x if x >= 0 else multiply(alpha, subtract(exp(divide(x, alpha)), ONE))
    )


def hard_sigmoid(x: Decimal, alpha: Decimal, beta: Decimal) -> Decimal:
    """max(0, min(1, alpha * x + beta))."""
    return max(ZERO, min(ONE, add(multiply(alpha, x), beta)))


def hard_swish(x: Decimal) -> Decimal:
    """x * max(0, min(1, x / 6 + 1/2))."""
    return multiply(x, hard_sigmoid(x, divide(ONE, Decimal(6)), HALF))


def power(x: Decimal, y: Decimal) -> Decimal:
    """x^y: by multiplication for an integer y of at most 64, else e^(y ln x)."""
    if y.copy_abs() <= 64 and y == y.to_integral_value():
        result = ONE
        for _ in range(abs(int(y))):
            result = multiply(result, x)
        return result if y >= 0 else divide(ONE, result)
    if x == 0:
        return ZERO if y > 0 else Decimal("Infinity")
    return PRECISION.exp(multiply(y, PRECISION.ln(x)))


def shrink(x: Decimal, threshold: Decimal, bias: Decimal) -> Decimal:
    """0 within the threshold; outside it, x moved toward 0 by the bias."""
    if x.copy_abs() <= threshold:
        return ZERO
    return subtract(x, bias) if x > 0 else add(x, bias)


def _attribute(node: ir.Node, name: str) -> Decimal:
    return Decimal(node.attributes[name].as_float())


def _selu(node: ir.Node, x: Decimal) -> Decimal:
    return multiply(
        _attribute(node, "gamma"), elu(x, _attribute(node, "alpha"))
    )


def _hard_sigmoid(node: ir.Node, x: Decimal) -> Decimal:
    return hard_sigmoid(x, _attribute(node, "alpha"), _attribute(node, "beta"))


def _shrink(node: ir.Node, x: Decimal) -> Decimal:
    return shrink(x, _attribute(node, "lambd"), _attribute(node, "bias"))


def _cast(node: ir.Node, x: Decimal) -> Decimal:
    """Cast to bool, or from a boolean to float."""
    if node.attributes["to"].as_int() == ir.DataType.FLOAT:
        return x
    return ONE if x else ZERO


UNARY: dict[str, Callable[[ir.Node, Decimal], Decimal]] = {
    "Sigmoid": lambda _, x: sigmoid(x),
    "Tanh": lambda _, x: tanh(x),
    "Exp": lambda _, x: exp(x),
    "Log": lambda _, x: PRECISION.ln(x),
    "Sqrt": lambda _, x: PRECISION.sqrt(x),
    "Erf": lambda _, x: erf(x),
    "Elu": lambda node, x: elu(x, _attribute(node, "alpha")),
    "Celu": lambda node, x: celu(x, _attribute(node, "alpha")),
    "Selu": _selu,
    "Abs": lambda _, x: x.copy_abs(),
    "Neg": lambda _, x: x.copy_negate(),
    "Relu": lambda _, x: max(x, ZERO),
    "Reciprocal": lambda _, x: divide(ONE, x),
    "Softplus": lambda _, x: softplus(x),
    "Softsign": lambda _, x: divide(x, add(ONE, x.copy_abs())),
    "HardSigmoid": _hard_sigmoid,
    "HardSwish": lambda _, x: hard_swish(x),
    "Gelu": lambda node, x: gelu(x, node.attributes["approximate"].as_string()),
    "Mish": lambda _, x: multiply(x, tanh(softplus(x))),
    "Floor": lambda _, x: x.to_integral_value("ROUND_FLOOR", PRECISION),
    "Ceil": lambda _, x: x.to_integral_value("ROUND_CEILING", PRECISION),
    "Sign": lambda _, x: ONE.copy_sign(x) if x else ZERO,
    "Round": lambda _, x: x.to_integral_value("ROUND_HALF_EVEN", PRECISION),
    "ThresholdedRelu": lambda node, x: (
        x if x > _attribute(node, "alpha") else ZERO
    ),
    "Shrink": _shrink,
    "Sin": lambda _, x: trigonometry.sine(x),
    "Cos": lambda _, x: trigonometry.cosine(x),
    "Tan": lambda _, x: trigonometry.tangent(x),
    "Asin": lambda _, x: trigonometry.arc_sine(x),
    "Acos": lambda _, x: trigonometry.arc_cosine(x),
    "Atan": lambda _, x: trigonometry.arc_tangent(x),
    "Sinh": lambda _, x: trigonometry.hyperbolic_sine(x),
    "Cosh": lambda _, x: trigonometry.hyperbolic_cosine(x),
    "Asinh": lambda _, x: trigonometry.area_sine(x),
    "Acosh": lambda _, x: trigonometry.area_cosine(x),
    "Atanh": lambda _, x: trigonometry.area_tangent(x),
    "Not": lambda _, x: subtract(ONE, x),
    "Cast": _cast,
}
BINARY: dict[str, Callable[[Decimal, Decimal], Decimal]] = {
    "Add": add,
    "Sub": subtract,
    "Mul": multiply,
    "Div": divide,
    "Max": max,
    "Min": min,
    "Pow": power,
    "Mod": PRECISION.remainder,  # with the sign of the dividend, as fmod
    "Greater": lambda x, y: ONE if x > y else ZERO,
    "GreaterOrEqual": lambda x, y: ONE if x >= y else ZERO,
    "Less": lambda x, y: ONE if x < y else ZERO,
    "LessOrEqual": lambda x, y: ONE if x <= y else ZERO,
    "Equal": lambda x, y: ONE if x == y else ZERO,
    "And": min,
    "Or": max,
}
STRAIGHT = frozenset({"Abs", "Neg", "Relu", "Not", "Cast"})
CURVED = frozenset(UNARY) - STRAIGHT | {"Div", "Mod", "Pow"}
ELEMENTWISE = frozenset(UNARY) | frozenset(BINARY) | {"Clip", "Where"}
