"""Recognises remainders that a file computes from a quotient."""

from __future__ import annotations

import onnx_ir as ir

from mrt.graph.integer_quotients import (
    IntegerQuotient,
    integers_behind,
    is_same,
    positive_integer,
)
from mrt.graph.patch import Patch
from mrt.graph.values import first, nodes, operand, producer, shape_of


def take_remainders(model: ir.Model) -> int:
    """x - (x / n) * n -> Mod(x, n), for a quotient of integers that is rounded down or toward zero.

    All of them may be cast to floats. Equal: for floats, where |x| < 2^24. The remainder
    is proven to be less than n, whatever x is; of a difference only the ends of both
    operands are known.
    """
    return sum(map(_take, nodes(model, "Sub")))


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
