"""Functions of each element: of one tensor, of two, of one and a number."""

from __future__ import annotations

import numpy as np

from tests.mxnet_judge.draw import OMIT, Draw
from tests.mxnet_judge.makers.registry import Drawn, maker

LARGE = 0.1  # the share of cases whose data reach far beyond where functions are curved

ANYWHERE = (
    "relu", "sigmoid", "tanh", "exp", "abs", "negative", "erf", "floor", "ceil", "sign", "softsign", "square", "round",
    "rint", "fix", "trunc", "cbrt", "expm1", "sin", "cos", "tan", "arctan", "sinh", "cosh", "arcsinh", "degrees",
    "radians", "logical_not", "identity", "_copy", "BlockGrad", "stop_gradient", "make_loss",
    "reciprocal", "rcbrt", "_copyto", "_contrib_round_ste", "_contrib_sign_ste",
)  # fmt: skip
POSITIVE = ("log", "log2", "log10", "log1p", "sqrt", "rsqrt", "arccosh")
WITHIN_ONE = ("arcsin", "arccos", "arctanh")
COMPARISONS = (
    "equal",
    "not_equal",
    "greater",
    "greater_equal",
    "lesser",
    "lesser_equal",
)
LOGIC = ("logical_and", "logical_or", "logical_xor")
SAME_SHAPE = (
    "elemwise_add", "_add", "_plus", "_Plus", "_grad_add", "elemwise_sub", "_sub", "_minus", "_Minus", "elemwise_mul",
    "_mul", "_Mul", "elemwise_div", "_div", "_Div", "_maximum", "_Maximum", "_minimum", "_Minimum", "_mod", "_Mod",
    "_hypot", "_Hypot", "_scatter_elemwise_div", "_identity_with_attr_like_rhs",
    "_equal", "_Equal", "_not_equal", "_Not_Equal", "_greater", "_Greater", "_greater_equal", "_Greater_Equal",
    "_lesser", "_Lesser", "_lesser_equal", "_Lesser_Equal",
    "_logical_and", "_Logical_And", "_logical_or", "_Logical_Or", "_logical_xor", "_Logical_Xor",
)  # fmt: skip
POWERS = ("_power", "_Power", "broadcast_power")
BROADCAST = (
    "broadcast_add", "broadcast_plus", "broadcast_sub", "broadcast_minus", "broadcast_mul", "broadcast_div",
    "broadcast_mod", "broadcast_maximum", "broadcast_minimum", "broadcast_hypot",
    *(f"broadcast_{name}" for name in (*COMPARISONS, *LOGIC)),
)  # fmt: skip
SCALAR = (
    "_plus_scalar", "_PlusScalar", "_minus_scalar", "_MinusScalar", "_mul_scalar", "_MulScalar", "_div_scalar",
    "_DivScalar", "_maximum_scalar", "_MaximumScalar", "_minimum_scalar", "_MinimumScalar", "_rminus_scalar",
    "_RMinusScalar", "_rdiv_scalar", "_RDivScalar", "_mod_scalar", "_ModScalar", "_rmod_scalar", "_RModScalar",
    "_hypot_scalar", "_HypotScalar", "_scatter_plus_scalar", "_scatter_minus_scalar",
    "_equal_scalar", "_EqualScalar", "_not_equal_scalar", "_NotEqualScalar", "_greater_scalar", "_GreaterScalar",
    "_greater_equal_scalar", "_GreaterEqualScalar", "_lesser_scalar", "_LesserScalar", "_lesser_equal_scalar",
    "_LesserEqualScalar", "_logical_and_scalar", "_LogicalAndScalar", "_logical_or_scalar", "_LogicalOrScalar",
    "_logical_xor_scalar", "_LogicalXorScalar",
)  # fmt: skip
POWER_SCALAR = (
    "_power_scalar",
    "_PowerScalar",
    "_rpower_scalar",
    "_RPowerScalar",
)


@maker(*ANYWHERE, cases=6)
def anywhere(draw: Draw, name: str) -> Drawn:
    data = draw.data(draw.shape(1, 5))
    if draw.chance(0.3):
        data = data + np.float32(0.5)
    return Drawn([data * np.float32(20) if draw.chance(LARGE) else data])


@maker("zeros_like", "ones_like", cases=6)
def filled_like(draw: Draw, name: str) -> Drawn:
    """MXNet does not look at the dtype."""
    return Drawn(
        [draw.data(draw.shape(1, 5))], {"dtype": draw.maybe("int64", "float32")}
    )


@maker(*POSITIVE, cases=6)
def positive(draw: Draw, name: str) -> Drawn:
    """Now and then where the function is not defined."""
    return Drawn(
        [draw.data(draw.shape(1, 5), "any" if draw.chance(0.2) else "positive")]
    )


@maker(*WITHIN_ONE, cases=6)
def within_one(draw: Draw, name: str) -> Drawn:
    data = draw.data(draw.shape(1, 5))
    return Drawn(
        [data if draw.chance(0.2) else np.clip(data / 4, -0.96875, 0.96875)]
    )


@maker(*SAME_SHAPE, cases=6)
def same_shape(draw: Draw, name: str) -> Drawn:
    """Sometimes shapes that only a broadcast operator takes."""
    shape = draw.shape(1, 5)
    other = (1, *shape[1:]) if draw.chance(0.1) else shape
    return Drawn([draw.data(shape), draw.data(other)])


@maker(*BROADCAST, cases=8)
def broadcast(draw: Draw, name: str) -> Drawn:
    left, right = _broadcastable(draw)
    return Drawn([draw.data(left), draw.data(right)])


def _broadcastable(draw: Draw) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Ones anywhere on either side; sometimes fewer dimensions on one."""
    shape = draw.shape(1, 5)
    left = tuple(1 if draw.chance(0.2) else size for size in shape)
    right = tuple(1 if draw.chance(0.3) else size for size in shape)
    if draw.chance(0.2):
        right = right[draw.integer(0, len(right) - 1) :]
    return (right, left) if draw.chance(0.2) else (left, right)


@maker(*POWERS, cases=8)
def powers(draw: Draw, name: str) -> Drawn:
    left, right = (
        _broadcastable(draw)
        if name.startswith("broadcast")
        else (draw.shape(1, 4),) * 2
    )
    if left == right and not name.startswith("broadcast"):
        right = left
    return Drawn(
        [
            draw.data(left, "any" if draw.chance(0.3) else "positive"),
            draw.data(right),
        ]
    )


@maker(*SCALAR, cases=6)
def scalar(draw: Draw, name: str) -> Drawn:
    number = draw.one(
        0.0, 1.0, -1.0, 2.0, draw.real(-3, 3), draw.one(0.25, -0.5, 0.75), 3
    )
    data = draw.data(draw.shape(1, 5))
    return Drawn([data], {"scalar": number, "is_int": _is_int(draw, number)})


@maker(*POWER_SCALAR, cases=6)
def power_scalar(draw: Draw, name: str) -> Drawn:
    number = draw.one(
        0.0, 1.0, 2.0, -1.0, 3, 0.5, draw.real(0.1, 2.5), draw.real(-2, 2)
    )
    kind = "any" if draw.chance(0.3) else "positive"
    return Drawn(
        [draw.data(draw.shape(1, 5), kind)],
        {"scalar": number, "is_int": _is_int(draw, number)},
    )


def _is_int(draw: Draw, number: float) -> object:
    """How the front end of MXNet says that an integer was written without a point."""
    return draw.maybe(isinstance(number, int)) if draw.chance(0.5) else OMIT


@maker("_contrib_gradientmultiplier", cases=6)
def gradient_multiplier(draw: Draw, name: str) -> Drawn:
    return Drawn(
        [draw.data(draw.shape(1, 4))],
        {"scalar": draw.maybe(0.5, 2.0), "is_int": draw.maybe(False)},
    )


@maker("_contrib_quadratic", cases=8)
def quadratic(draw: Draw, name: str) -> Drawn:
    return Drawn(
        [draw.data(draw.shape(1, 4))],
        {word: draw.maybe(draw.real(-2, 2)) for word in "abc"},
    )


@maker("hard_sigmoid")
def hard_sigmoid(draw: Draw, name: str) -> Drawn:
    attributes = {
        "alpha": draw.maybe(draw.real(0.05, 1)),
        "beta": draw.maybe(draw.real(-1, 1)),
    }
    return Drawn([draw.data(draw.shape(1, 4))], attributes)


@maker("clip", cases=12)
def clip(draw: Draw, name: str) -> Drawn:
    low, high = sorted((draw.real(-2, 2), draw.real(-2, 2)))
    if draw.chance(0.1):
        low, high = high, low
    low = draw.one(low, low, low, "-inf", 0)
    high = draw.one(high, high, high, "inf", 2)
    return Drawn([draw.data(draw.shape(1, 4))], {"a_min": low, "a_max": high})


@maker("smooth_l1", cases=10)
def smooth_l1(draw: Draw, name: str) -> Drawn:
    return Drawn(
        [draw.data(draw.shape(1, 4))],
        {"scalar": draw.maybe(1.0, draw.real(0.25, 3), 2)},
    )


@maker("add_n", "ElementWiseSum", cases=8)
def add_n(draw: Draw, name: str) -> Drawn:
    number, shape = draw.integer(1, 5), draw.shape(1, 4)
    shapes = [shape] * number
    if draw.chance(0.1):
        shapes[-1] = (*shape, 2)
    return Drawn([draw.data(each) for each in shapes], {"num_args": number})


@maker("Cast", "cast", cases=14)
def cast(draw: Draw, name: str) -> Drawn:
    """To an integer, numbers that fit it: what MXNet makes of others is left to the compiler."""
    dtype = draw.one("float32", "int32", "int64", "int8", "uint8")
    data = draw.data(
        draw.shape(1, 4), "positive" if dtype == "uint8" else "any"
    )
    return Drawn([data], {"dtype": dtype})


@maker("amp_cast", cases=4)
def amp_cast(draw: Draw, name: str) -> Drawn:
    return Drawn([draw.data(draw.shape(1, 4))], {"dtype": "float32"})


@maker("amp_multicast", cases=4)
def amp_multicast(draw: Draw, name: str) -> Drawn:
    number = draw.integer(1, 3)
    operands = [draw.data(draw.shape(1, 4)) for _ in range(number)]
    return Drawn(
        operands,
        {"num_outputs": number, "cast_narrow": draw.maybe(True, False)},
        outputs=number,
    )
