"""The functions of `functions.py` on enclosures.

The result of a function encloses its decimal form for every number in the operand.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import onnx_ir as ir

from mrt.exact.enclosure import Enclosure, near
from mrt.exact.fixed_point import FloatArray

ZERO, ONE, HALF = Enclosure.of(0), Enclosure.of(1), Enclosure.of(0.5)
SIXTH = near(1 / 6)
ROOT_TWO = near(math.sqrt(2))
ROOT_TWO_OVER_PI = near(math.sqrt(2 / math.pi))
WAVE_LIMIT = 2.0**20
"""C libraries subtract full turns from larger numbers less exactly."""

MOST_FACTORS = 64  # as in `functions.power`


def _logistic(x: FloatArray) -> FloatArray:
    return 1 / (1 + np.exp(-x))


def _log_of_one_and_exp(x: FloatArray) -> FloatArray:
    return np.logaddexp(0, x)


def _error_function(x: FloatArray) -> FloatArray:
    numbers = [math.erf(number) for number in x.ravel().tolist()]
    return np.array(numbers).reshape(x.shape)


def _minus_arc_cosine(x: FloatArray) -> FloatArray:
    return -np.arccos(x)


def exp(x: Enclosure) -> Enclosure:
    """e^x."""
    return x.rising(np.exp, low=0)


def sigmoid(x: Enclosure) -> Enclosure:
    """1 / (1 + e^-x)."""
    return x.rising(_logistic, 0, 1)


def tanh(x: Enclosure) -> Enclosure:
    """The hyperbolic tangent."""
    return x.rising(np.tanh, -1, 1)


def softplus(x: Enclosure) -> Enclosure:
    """ln(1 + e^x)."""
    return x.rising(_log_of_one_and_exp, low=0)


def gelu(x: Enclosure, approximate: str) -> Enclosure:
    """x * (1 + erf(x / sqrt 2)) / 2, or its tanh form."""
    if approximate == "tanh":
        cubic = x + near(0.044715) * (x * (x * x))
        curve = tanh(ROOT_TWO_OVER_PI * cubic)
    else:
        curve = (x / ROOT_TWO).rising(_error_function, -1, 1)
    return HALF * x * (ONE + curve)


def tan(x: Enclosure) -> Enclosure:
    """sin / cos."""
    return x.wave(np.sin, WAVE_LIMIT) / x.wave(np.cos, WAVE_LIMIT)


def elu(x: Enclosure, alpha: Enclosure, stretch: Enclosure = ONE) -> Enclosure:
    """x above 0, alpha * (e^(x/stretch) - 1) below."""
    return x.not_less(ZERO).choose(x, alpha * (exp(x / stretch) - ONE))


def hard_sigmoid(x: Enclosure, alpha: Enclosure, beta: Enclosure) -> Enclosure:
    """max(0, min(1, alpha * x + beta))."""
    return (alpha * x + beta).at_most(ONE).at_least(ZERO)


def shrink(x: Enclosure, threshold: Enclosure, bias: Enclosure) -> Enclosure:
    """0 within the threshold; outside it, x moved toward 0 by the bias."""
    moved = x.greater(ZERO).choose(x - bias, x + bias)
    return threshold.not_less(abs(x)).choose(ZERO, moved)


def power(x: Enclosure, y: Enclosure) -> Enclosure:
    """x^y: by multiplication if y is one integer of at most 64, else e^(y ln x)."""
    exponent = float(y.low.ravel()[0])
    constant = y.low.size == 1 and exponent == float(y.high.ravel()[0])
    is_integer = exponent == np.floor(exponent)
    if not constant or abs(exponent) > MOST_FACTORS or not is_integer:
        # 0^y with y < 0 stays unknown, because 1 / -0 is minus infinity.
        certain = (x.low > 0) | ((x.low >= 0) & (y.low > 0))
        return exp(y * x.rising(np.log)).where(certain)
    result = ONE
    for _ in range(abs(int(exponent))):
        result = result * x
    return result if exponent >= 0 else ONE / result


def remainder(x: Enclosure, y: Enclosure) -> Enclosure:
    """The remainder with the sign of x.

    It is known where both are integers, or where the truncated quotient is certain.
    """
    times = (x / y).steps(np.trunc)
    remainder = (x - times * y).where(times.low == times.high)
    exact = np.fmod(x.low, y.low)
    integral = x.integral & y.integral
    low = np.where(integral, exact, remainder.low)
    high = np.where(integral, exact, remainder.high)
    return Enclosure(low, high)


def _attribute(node: ir.Node, name: str) -> Enclosure:
    return Enclosure.of(node.attributes[name].as_float())


def _celu(node: ir.Node, x: Enclosure) -> Enclosure:
    alpha = _attribute(node, "alpha")
    return elu(x, alpha, alpha)


def _selu(node: ir.Node, x: Enclosure) -> Enclosure:
    return _attribute(node, "gamma") * elu(x, _attribute(node, "alpha"))


def _hard_sigmoid(node: ir.Node, x: Enclosure) -> Enclosure:
    return hard_sigmoid(x, _attribute(node, "alpha"), _attribute(node, "beta"))


def _thresholded_relu(node: ir.Node, x: Enclosure) -> Enclosure:
    return x.greater(_attribute(node, "alpha")).choose(x, ZERO)


def _shrink(node: ir.Node, x: Enclosure) -> Enclosure:
    return shrink(x, _attribute(node, "lambd"), _attribute(node, "bias"))


def _cast(node: ir.Node, x: Enclosure) -> Enclosure:
    """Cast to bool, or from a boolean to float."""
    to_float = node.attributes["to"].as_int() == ir.DataType.FLOAT
    return x if to_float else x.is_true()


UNARY: dict[str, Callable[[ir.Node, Enclosure], Enclosure]] = {
    "Sigmoid": lambda _, x: sigmoid(x),
    "Tanh": lambda _, x: tanh(x),
    "Exp": lambda _, x: exp(x),
    "Log": lambda _, x: x.rising(np.log).defined(0, np.inf, x),
    "Sqrt": lambda _, x: x.rising(np.sqrt, low=0).defined(0, np.inf, x),
    "Erf": lambda _, x: x.rising(_error_function, -1, 1),
    "Elu": lambda node, x: elu(x, _attribute(node, "alpha")),
    "Celu": _celu,
    "Selu": _selu,
    "Abs": lambda _, x: abs(x),
    "Neg": lambda _, x: -x,
    "Relu": lambda _, x: x.at_least(ZERO),
    "Reciprocal": lambda _, x: ONE / x,
    "Softplus": lambda _, x: softplus(x),
    "Softsign": lambda _, x: x / (ONE + abs(x)),
    "HardSigmoid": _hard_sigmoid,
    "HardSwish": lambda _, x: x * hard_sigmoid(x, SIXTH, HALF),
    "Gelu": lambda node, x: gelu(x, node.attributes["approximate"].as_string()),
    "Mish": lambda _, x: x * tanh(softplus(x)),
    "Floor": lambda _, x: x.steps(np.floor),
    "Ceil": lambda _, x: x.steps(np.ceil),
    "Sign": lambda _, x: x.steps(np.sign),
    "Round": lambda _, x: x.steps(np.rint),
    "ThresholdedRelu": _thresholded_relu,
    "Shrink": _shrink,
    "Sin": lambda _, x: x.wave(np.sin, WAVE_LIMIT),
    "Cos": lambda _, x: x.wave(np.cos, WAVE_LIMIT),
    "Tan": lambda _, x: tan(x),
    "Asin": lambda _, x: x.rising(np.arcsin).defined(-1, 1, x),
    "Acos": lambda _, x: (-x.rising(_minus_arc_cosine)).defined(-1, 1, x),
    "Atan": lambda _, x: x.rising(np.arctan),
    "Sinh": lambda _, x: x.rising(np.sinh),
    "Cosh": lambda _, x: HALF * (exp(x) + exp(-x)),
    "Asinh": lambda _, x: x.rising(np.arcsinh),
    "Acosh": lambda _, x: x.rising(np.arccosh, low=0),
    "Atanh": lambda _, x: x.rising(np.arctanh).defined(-1, 1, x),
    "Not": lambda _, x: ONE - x,
    "Cast": _cast,
}
BINARY: dict[str, Callable[[Enclosure, Enclosure], Enclosure]] = {
    "Add": lambda x, y: x + y,
    "Sub": lambda x, y: x - y,
    "Mul": lambda x, y: x * y,
    "Div": lambda x, y: x / y,
    "Max": Enclosure.at_least,
    "Min": Enclosure.at_most,
    "Pow": power,
    "Mod": remainder,
    "Greater": Enclosure.greater,
    "GreaterOrEqual": Enclosure.not_less,
    "Less": lambda x, y: y.greater(x),
    "LessOrEqual": lambda x, y: y.not_less(x),
    "Equal": Enclosure.equal,
    "And": Enclosure.at_most,
    "Or": Enclosure.at_least,
}
RISING = frozenset(
    {
        "Sigmoid",
        "Tanh",
        "Exp",
        "Log",
        "Sqrt",
        "Erf",
        "Softplus",
        "Softsign",
        "Atan",
        "Sinh",
        "Asinh",
    }
)
RISING_BY_POSITIVE = frozenset({"Elu", "Celu", "Selu"})


def rises(node: ir.Node) -> bool:
    """Whether an operator certainly never falls: a greater operand never has a smaller result."""
    if node.op_type in RISING_BY_POSITIVE:
        return all(
            attribute.as_float() > 0 for attribute in node.attributes.values()
        )
    return node.op_type in RISING
