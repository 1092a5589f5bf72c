"""Quotients of integers by a positive constant, rounded down or toward zero, as canonical graphs have them.

One that is rounded toward zero is Div(x, n), as ONNX defines it for integers. One that is rounded
down is Div(x - Mod(x, n), n), where nothing is left to round.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from mrt.graph.patch import Patch
from mrt.graph.values import (
    constant,
    first,
    int_attribute,
    operand,
    producer,
    shape_of,
)

GREATEST_DIVISOR = 2**31 - 1
_WIDE = (ir.DataType.INT32, ir.DataType.INT64, ir.DataType.FLOAT)


@dataclass(frozen=True)
class IntegerQuotient:
    """The quotient of a value of integers by a positive integer."""

    x: ir.Value
    n: int
    rounds_down: bool

    @classmethod
    def behind(cls, value: ir.Value | None) -> IntegerQuotient | None:
        """Return the quotient that a value is; None for another value."""
        node = producer(value, "Div")
        n = None if node is None else positive_integer(operand(node, 1))
        if node is None or n is None or not holds_integers(first(node)):
            return None
        if shape_of(first(node)) != shape_of(node.outputs[0]):
            return None
        multiple = producer(first(node), "Sub")
        if multiple is not None and is_remainder(
            operand(multiple, 1), first(multiple), n, fmod=0
        ):
            return cls(first(multiple), n, rounds_down=True)
        return cls(first(node), n, rounds_down=False)

    def write(self, patch: Patch) -> None:
        """Finish a patch with the quotient, in the type of its result."""
        x, n = self._operands(patch)
        if self.rounds_down:
            x = patch.add("Sub", x, patch.add("Mod", x, n, fmod=0))
        _finish(patch, patch.add("Div", x, n))

    def write_remainder(self, patch: Patch) -> None:
        """Finish a patch with what the quotient leaves of x, in the type of its result."""
        x, n = self._operands(patch)
        _finish(patch, patch.add("Mod", x, n, fmod=int(not self.rounds_down)))

    def _operands(self, patch: Patch) -> tuple[ir.Value, ir.Value]:
        """Return x and n in one type."""
        x = patch.add("Cast", self.x, to=int(ir.DataType.INT64))
        return x, patch.constant(np.array(self.n, np.int64), "divisor")


def _finish(patch: Patch, value: ir.Value) -> None:
    kind = patch.output.dtype
    assert kind is not None
    patch.finish(patch.add("Cast", value, to=int(kind)))


def is_remainder(
    value: ir.Value | None, x: ir.Value, n: int, *, fmod: int | None = None
) -> bool:
    """Whether a value is Mod(x, n), with this fmod or with any."""
    node = producer(value, "Mod")
    if node is None or not is_same(first(node), x):
        return False
    is_of_kind = fmod in (None, int_attribute(node, "fmod", 0))
    return is_of_kind and positive_integer(operand(node, 1)) == n


def is_same(left: ir.Value, right: ir.Value) -> bool:
    """Whether two values are the same integers, in types that hold them."""
    return integers_behind(left) is integers_behind(right)


def integers_behind(value: ir.Value) -> ir.Value:
    """Return the integers that were cast to a value of a wide type, or the value itself."""
    while value.dtype in _WIDE:
        node = producer(value, "Cast")
        if node is None or not holds_integers(first(node)):
            break
        value = first(node)
    return value


def positive_integer(value: ir.Value | None) -> int | None:
    """Return the one number of a constant if it is a positive integer of 32 bits."""
    array = constant(value)
    if array is None or array.size != 1 or array.dtype.kind not in "fiu":
        return None
    number = float(array.reshape(()))
    is_positive = 1 <= number <= GREATEST_DIVISOR and number.is_integer()
    return int(number) if is_positive else None


def holds_integers(value: ir.Value) -> bool:
    """Whether a value has a type of integers."""
    return value.dtype is not None and value.dtype.is_integer()
