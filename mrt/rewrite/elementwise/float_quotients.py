"""Lowers quotients of integers that a file computes in floats, and rounds, to quotients of integers."""

from __future__ import annotations

import onnx_ir as ir

from mrt.graph.integer_quotients import (
    IntegerQuotient,
    holds_integers,
    positive_integer,
)
from mrt.graph.patch import Patch
from mrt.graph.values import first, nodes, operand, producer, shape_of


def divide_as_integers(model: ir.Model) -> int:
    """Floor(q) -> the quotient of integers that is rounded down, Cast(q) to integers -> the one rounded toward zero.

    q is Div(Cast(x), n) of floats, for integers x and a constant positive integer n.
    Floor(Abs(q)) * Sign(q), as torch.export writes it, is rounded toward zero, too.
    Integers that are cast to float and back stay as they are.

    Equal where |x| < 2^24. There float32 holds x, and moves x / n by half a step at most,
    which is less than 1 / n, since it is no more than |x / n| / 2^24. From an integer that
    it is not equal to, x / n is 1 / n away or more. Of greater integers float32 has some
    alone, while a program has all.
    """
    count = 0
    for node in nodes(model, "Floor", "Mul", "Cast"):
        quotient = _written_as(node)
        if quotient is not None:
            quotient.write(Patch(node))
            count += 1
        elif node.op_type == "Cast" and _casts_back(node):
            count += 1
    return count


def _written_as(node: ir.Node) -> IntegerQuotient | None:
    """Return the quotient of integers that a node rounds."""
    if node.op_type == "Floor":
        return _quotient(first(node), rounds_down=True)
    if node.op_type == "Mul":
        left, right = node.inputs
        return _truncated(left, right) or _truncated(right, left)
    is_cut = holds_integers(node.outputs[0])
    return _quotient(first(node), rounds_down=False) if is_cut else None


def _quotient(
    value: ir.Value | None, *, rounds_down: bool
) -> IntegerQuotient | None:
    """Return the quotient of integers that a float is, and how it is going to be rounded."""
    is_float = value is not None and value.dtype == ir.DataType.FLOAT
    node = producer(value, "Div") if is_float else None
    cast = None if node is None else producer(first(node), "Cast")
    if node is None or cast is None or not holds_integers(first(cast)):
        return None
    x, n = first(cast), positive_integer(operand(node, 1))
    if n is None or shape_of(x) != shape_of(node.outputs[0]):
        return None
    return IntegerQuotient(x, n, rounds_down)


def _truncated(
    magnitude: ir.Value | None, sign: ir.Value | None
) -> IntegerQuotient | None:
    """Return the quotient of Floor(Abs(q)) * Sign(q)."""
    floor, of_sign = producer(magnitude, "Floor"), producer(sign, "Sign")
    absolute = None if floor is None else producer(first(floor), "Abs")
    if absolute is None or of_sign is None:
        return None
    if first(absolute) is not first(of_sign):
        return None
    return _quotient(first(of_sign), rounds_down=False)


def _casts_back(node: ir.Node) -> bool:
    """Cast the integers themselves where they were cast to float in between."""
    to_float = producer(first(node), "Cast")
    if to_float is None or first(node).dtype != ir.DataType.FLOAT:
        return False
    if not (
        holds_integers(first(to_float)) and holds_integers(node.outputs[0])
    ):
        return False
    node.replace_input_with(0, first(to_float))
    return True
