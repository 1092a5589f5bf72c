"""Recognises remainders that a file computes from a quotient."""

from __future__ import annotations

import onnx_ir as ir

from mrt.graph.integer_quotients import (
    IntegerQuotient,
    holds_integers,
    integers_behind,
    is_same,
    positive_integer,
)
from mrt.graph.patch import Patch
from mrt.graph.values import first, nodes, operand, producer, shape_of


def take_remainders(model: ir.Model) -> int:
    """x - (x / n) * n -> Mod(x, n), for a quotient of integers that is rounded down or toward zero.

    All of them may be cast to floats, and so may the operand of a Mod itself. Equal: for
    floats, where |x| < 2^24. The remainder is proven to be less than n, whatever x is; of
    a difference only the ends of both operands are known.
    """
    differences = [_take(node) for node in nodes(model, "Sub")]
    of_floats = [_take_from_floats(node) for node in nodes(model, "Mod")]
    return sum(differences) + sum(of_floats)


def _take(node: ir.Node) -> bool:
    x, multiple = first(node), producer(operand(node, 1), "Mul")
    if multiple is None or shape_of(x) != shape_of(node.outputs[0]):
        return False
    quotient = IntegerQuotient.behind(integers_behind(first(multiple)))
    if quotient is None or not is_same(x, quotient.x):
        return False
    if positive_integer(operand(multiple, 1)) != quotient.n:
        return False
    quotient.write_remainder(Patch(node))
    return True


def _take_from_floats(node: ir.Node) -> bool:
    """Write the remainder of integers that were cast to float as one of integers."""
    x, n = integers_behind(first(node)), positive_integer(operand(node, 1))
    if node.outputs[0].dtype != ir.DataType.FLOAT or n is None:
        return False
    if not holds_integers(x) or shape_of(x) != shape_of(node.outputs[0]):
        return False
    IntegerQuotient(x, n, rounds_down=False).write_remainder(Patch(node))
    return True
