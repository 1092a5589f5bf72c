"""Joins the shift of signed integers to the right that exporters write with one of unsigned integers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from mrt.graph.patch import Patch
from mrt.graph.values import (
    constant,
    first,
    nodes,
    operand,
    producer,
    scalar,
    string_attribute,
)
from mrt.rewrite.elementwise.bitwise import MOST_SHIFT


def join_signed_shifts(model: ir.Model) -> int:
    """Where(x < 0, (unsigned(x) >> s) | the s highest bits, unsigned(x) >> s) -> (x - x mod 2^s) / 2^s.

    ONNX shifts unsigned integers alone. Equal: both divide by 2^s, and round down.
    """
    return sum(_join(node) for node in nodes(model, "Where"))


@dataclass(frozen=True)
class _Shift:
    """An unsigned shift to the right, of a signed value."""

    result: ir.Value
    of: ir.Value
    steps: int
    bits: int

    @classmethod
    def behind(cls, value: ir.Value | None) -> _Shift | None:
        """Return the shift that gives a value; None for another value."""
        node = producer(value, "BitShift")
        cast = None if node is None else producer(first(node), "Cast")
        if node is None or cast is None or first(cast).dtype is None:
            return None
        steps, kind = _integer(operand(node, 1)), _kind(first(cast))
        is_unsigned = _kind(first(node)) == f"u{kind}"
        is_right = string_attribute(node, "direction", "") == "RIGHT"
        if not (is_unsigned and is_right and steps is not None):
            return None
        bits = 8 * np.dtype(kind).itemsize
        if not 0 < steps <= min(MOST_SHIFT, bits - 1):
            return None
        return cls(node.outputs[0], first(cast), steps, bits)

    @property
    def highest_bits(self) -> int:
        """The bits that a negative number has in front after the shift."""
        return (1 << self.bits) - (1 << (self.bits - self.steps))


def _join(node: ir.Node) -> bool:
    shift = _Shift.behind(_before_cast(operand(node, 2)))
    if shift is None:
        return False
    filled = producer(_before_cast(operand(node, 1)), "BitwiseOr")
    if filled is None or not _is_filled(filled, shift):
        return False
    if not _is_of_negatives(operand(node, 0), shift.of):
        return False
    patch, kind = Patch(node), np.dtype(_kind(shift.of))
    wide = patch.add("Cast", shift.of, to=int(ir.DataType.INT64))
    power = patch.constant(np.array(1 << shift.steps, np.int64), "power")
    rest = patch.add("Mod", wide, power, fmod=0)
    quotient = patch.add("Div", patch.add("Sub", wide, rest), power)
    result = int(ir.DataType.from_numpy(kind))
    patch.finish(patch.add("Cast", quotient, to=result))
    return True


def _is_filled(node: ir.Node, shift: _Shift) -> bool:
    """Whether a BitwiseOr sets the highest bits of what is shifted, and no others."""
    operands = (operand(node, 0), operand(node, 1))
    masks = [number for it in operands if (number := _integer(it)) is not None]
    return shift.result in operands and masks == [shift.highest_bits]


def _is_of_negatives(condition: ir.Value | None, x: ir.Value) -> bool:
    node = producer(condition, "Less")
    if node is None or first(node) is not x:
        return False
    return scalar(operand(node, 1)) == 0


def _before_cast(value: ir.Value | None) -> ir.Value | None:
    cast = producer(value, "Cast")
    return None if cast is None else first(cast)


def _integer(value: ir.Value | None) -> int | None:
    array = constant(value)
    return None if array is None or array.size != 1 else int(array.reshape(()))


def _kind(value: ir.Value) -> str:
    return "" if value.dtype is None else str(value.dtype.numpy())
