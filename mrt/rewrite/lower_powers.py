"""Powers by a tensor of exponents are choices between powers by one; powers of whole numbers are products."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from mrt.rewrite.canonical import WHOLE_NUMBERS
from mrt.rewrite.edit import Array, Patch, constant, first, nodes, operand

MOST_EXPONENTS = 16
GREATEST_WHOLE_EXPONENT = 30  # of 2, in i32


def lower_powers(model: ir.Model) -> int:
    """Pow(x, [a, b, ..]) -> Where(exponent = b, Pow(x, b), Pow(x, a)); Pow(whole x, 5) -> x * (x * x) * (x * x).

    Applies to constant exponents, few of them different; of whole numbers to whole ones from 0 on. Equal to rounding.
    """
    count = 0
    for node in nodes(model, "Pow"):
        x, exponents = first(node), constant(operand(node, 1))
        if constant(x) is not None or exponents is None or not exponents.size:
            continue
        different = sorted({float(exponent) for exponent in exponents.reshape(-1)})
        whole = x.dtype in WHOLE_NUMBERS
        if len(different) > MOST_EXPONENTS or (whole and not all(map(_is_small, different))):
            continue
        if exponents.size == 1 and not whole:
            continue
        patch = Patch(node)
        power = _whole_power if whole else _power
        value = power(patch, x, different[0])
        for exponent in different[1:]:
            chosen = patch.constant(exponents == exponent, "chosen")
            value = patch.add("Where", chosen, power(patch, x, exponent), value)
        if len(different) == 1:
            value = _spread(patch, value, exponents)
        patch.finish(value)
        count += 1
    return count


def _is_small(exponent: float) -> bool:
    return exponent == int(exponent) and 0 <= exponent <= GREATEST_WHOLE_EXPONENT


def _power(patch: Patch, x: ir.Value, exponent: float) -> ir.Value:
    return patch.add("Pow", x, patch.constant(np.array(exponent, np.float32), "exponent"))


def _whole_power(patch: Patch, x: ir.Value, exponent: float) -> ir.Value:
    assert x.dtype is not None
    left, square, value = int(exponent), x, None
    while left:
        if left % 2:
            value = square if value is None else patch.add("Mul", value, square)
        left //= 2
        if left:
            square = patch.add("Mul", square, square)
    if value is None:
        zero, one = (patch.constant(np.array(number, x.dtype.numpy()), "number") for number in (0, 1))
        return patch.add("Add", patch.add("Mul", x, zero), one)
    return value


def _spread(patch: Patch, value: ir.Value, exponents: Array) -> ir.Value:
    """To the shape of exponents that are all alike."""
    everywhere = patch.constant(np.ones(exponents.shape, np.bool_), "everywhere")
    return patch.add("Where", everywhere, value, value)
