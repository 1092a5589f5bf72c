"""Lowers Pow by a tensor of exponents.

It becomes choices between powers by one exponent, an exponential, or integer products.
"""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from mrt.graph.patch import Patch
from mrt.graph.values import Array, constant, first, nodes, operand
from mrt.rewrite.canonical_operators import INTEGER_NUMBERS

MOST_EXPONENTS = 16
GREATEST_INTEGER_EXPONENT = 30  # of 2, in i32


def lower_pow(model: ir.Model) -> int:
    """Pow(x, [a, b, ..]) -> Where(exponent = b, Pow(x, b), Pow(x, a)).

    Pow(x, 5) of integers -> x * (x * x) * (x * x). Pow(x, y) -> Exp(y * Log(x)) where y
    is computed or has more than MOST_EXPONENTS different numbers. Applies to floats,
    and to integers with at most that many constant exponents, each from 0 up. Equal up
    to rounding. The form with Exp is equal for x above 0, and for x = 0 where the
    exponents are constants above 0; for other x the Log is NaN or infinite, and
    calibration refuses a sample with such an x that no Where drops.
    """
    return sum(map(_lower, nodes(model, "Pow")))


def _lower(node: ir.Node) -> bool:
    x, exponents = first(node), constant(operand(node, 1))
    if exponents is None or constant(x) is not None:
        return _exponential(node)
    different = sorted({float(exponent) for exponent in exponents.reshape(-1)})
    is_integer = x.dtype in INTEGER_NUMBERS
    if not different or (
        is_integer
        and not (
            len(different) <= MOST_EXPONENTS and all(map(_is_small, different))
        )
    ):
        return False
    if not is_integer and len(different) > MOST_EXPONENTS:
        return _exponential(node)
    if exponents.size == 1 and not is_integer:
        return False
    patch = Patch(node)
    power = _integer_power if is_integer else _power
    value = power(patch, x, different[0])
    for exponent in different[1:]:
        chosen = patch.constant(exponents == exponent, "chosen")
        value = patch.add("Where", chosen, power(patch, x, exponent), value)
    patch.finish(
        value if len(different) > 1 else _spread(patch, value, exponents)
    )
    return True


def _exponential(node: ir.Node) -> bool:
    """Lower Pow(x, y) to Exp(y * Log(x)).

    A constant base must be above 0. A base that is one number is left alone: it becomes
    a lookup table.
    """
    x, y = first(node), operand(node, 1)
    base = constant(x)
    if y is None or any(
        value.dtype != ir.DataType.FLOAT for value in (x, y, node.outputs[0])
    ):
        return False
    if base is not None and (
        base.size == 1 or constant(y) is not None or not (base > 0).all()
    ):
        return False
    patch, exponents = Patch(node), constant(y)
    if exponents is None or not (exponents > 0).all():
        patch.finish(_exponential_of(patch, x, y))
        return True
    # 0 to a power above 0 is 0, whose logarithm is none.
    zero, one = patch.number(0.0, "zero"), patch.number(1.0, "one")
    is_zero = patch.add("Equal", x, zero)
    is_zero.type, is_zero.shape = ir.TensorType(ir.DataType.BOOL), x.shape
    safe = patch.add("Where", is_zero, one, x)
    safe.shape = x.shape
    power = _exponential_of(patch, safe, y)
    power.shape = node.outputs[0].shape
    patch.finish(patch.add("Where", is_zero, zero, power))
    return True


def _exponential_of(patch: Patch, x: ir.Value, y: ir.Value) -> ir.Value:
    logarithm = patch.add("Log", x)
    logarithm.shape = x.shape
    return patch.add("Exp", patch.add("Mul", logarithm, y))


def _is_small(exponent: float) -> bool:
    return (
        exponent == int(exponent) and 0 <= exponent <= GREATEST_INTEGER_EXPONENT
    )


def _power(patch: Patch, x: ir.Value, exponent: float) -> ir.Value:
    return patch.add(
        "Pow", x, patch.constant(np.array(exponent, np.float32), "exponent")
    )


def _integer_power(patch: Patch, x: ir.Value, exponent: float) -> ir.Value:
    assert x.dtype is not None
    remaining, square, value = int(exponent), x, None
    while remaining:
        if remaining % 2:
            value = square if value is None else patch.add("Mul", value, square)
        remaining //= 2
        if remaining:
            square = patch.add("Mul", square, square)
    if value is None:
        zero, one = (
            patch.constant(np.array(number, x.dtype.numpy()), "number")
            for number in (0, 1)
        )
        return patch.add("Add", patch.add("Mul", x, zero), one)
    return value


def _spread(patch: Patch, value: ir.Value, exponents: Array) -> ir.Value:
    """Broadcast to the shape of exponents that are all equal."""
    everywhere = patch.constant(
        np.ones(exponents.shape, np.bool_), "everywhere"
    )
    return patch.add("Where", everywhere, value, value)
