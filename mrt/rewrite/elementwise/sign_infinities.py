"""Finds the sign of an infinite quotient in its numerator, as nan_to_num asks for it."""

from __future__ import annotations

import onnx_ir as ir

from mrt.graph.patch import Patch
from mrt.graph.values import first, nodes, operand, producer, scalar
from mrt.rewrite.elementwise.is_nan import may_be_infinite


def sign_infinities(model: ir.Model) -> int:
    """And(a / b < 0, IsInf(a / b)) -> And(a < 0, IsInf(a / b)); so also with > 0.

    A program's a / 0 is a number, and 0 where no quotient was measured on its side of
    0. Applies where a is finite. Equal where b is not -0 and nothing overflows.
    """
    return sum(_compare_numerator(node) for node in nodes(model, "And"))


def _compare_numerator(node: ir.Node) -> bool:
    """Rewrite one And; False where it is none of these."""
    for place in (0, 1):
        comparison = producer(operand(node, place), "Less", "Greater")
        asked = producer(operand(node, 1 - place), "IsInf")
        if comparison is None or asked is None:
            continue
        value, zero = first(comparison), operand(comparison, 1)
        quotient = producer(value, "Div")
        if (
            value is not first(asked)
            or quotient is None
            or scalar(zero) != 0
            or quotient.outputs[0].dtype not in (None, ir.DataType.FLOAT)
            or may_be_infinite(first(quotient), node)
        ):
            continue
        patch = Patch(node)
        below = patch.add(comparison.op_type, first(quotient), zero)
        patch.finish(patch.add("And", below, asked.outputs[0]))
        return True
    return False
