"""Brings a quotient of integers that is rounded down to the one form that canonical graphs have of it."""

from __future__ import annotations

from itertools import permutations

import onnx_ir as ir

from mrt.graph.integer_quotients import (
    IntegerQuotient,
    is_remainder,
    is_same,
)
from mrt.graph.patch import Patch
from mrt.graph.values import (
    first,
    nodes,
    operand,
    producer,
    scalar,
    shape_of,
)


def canonicalize_floor_division(model: ir.Model) -> int:
    """Div(x, n) - c, or Where(c, Div(x, n) - 1, Div(x, n)), with c = x < 0 and Mod(x, n) != 0 -> Div(x - Mod(x, n), n).

    So torch's exporters write x // n of integers. Always equal: a quotient that was
    rounded toward zero is one too many where it is negative and leaves a remainder.
    """
    differences = [_corrected(node) for node in nodes(model, "Sub")]
    choices = [_chosen(node) for node in nodes(model, "Where")]
    return sum(differences) + sum(choices)


def _corrected(node: ir.Node) -> bool:
    cast = producer(operand(node, 1), "Cast")
    if cast is None:
        return False
    return _round_down(node, first(node), first(cast))


def _chosen(node: ir.Node) -> bool:
    less, quotient = producer(operand(node, 1), "Add"), operand(node, 2)
    if less is None or quotient is None or first(less) is not quotient:
        return False
    if scalar(operand(less, 1)) != -1:
        return False
    return _round_down(node, quotient, first(node))


def _round_down(node: ir.Node, value: ir.Value, condition: ir.Value) -> bool:
    """Put a quotient that is rounded down in the place of one that is corrected under a condition."""
    quotient, both = IntegerQuotient.behind(value), producer(condition, "And")
    if quotient is None or quotient.rounds_down or both is None:
        return False
    if shape_of(quotient.x) != shape_of(node.outputs[0]):
        return False
    if not any(
        _is_negative(one, quotient.x) and _leaves_some(other, quotient)
        for one, other in permutations(both.inputs)
    ):
        return False
    IntegerQuotient(quotient.x, quotient.n, rounds_down=True).write(Patch(node))
    return True


def _is_negative(value: ir.Value | None, x: ir.Value) -> bool:
    """Whether a boolean is x < 0, or that the sign of x is not 1: of 0, which leaves no remainder, either will do."""
    below = _compared(value, "Less", 0)
    if below is not None:
        return is_same(below, x)
    sign = producer(_compared(_negated(value), "Equal", 1), "Sign")
    return sign is not None and is_same(first(sign), x)


def _leaves_some(value: ir.Value | None, quotient: IntegerQuotient) -> bool:
    """Whether a boolean is that the quotient leaves a remainder."""
    cast = producer(value, "Cast")
    rest = first(cast) if cast else _compared(_negated(value), "Equal", 0)
    return is_remainder(rest, quotient.x, quotient.n)


def _compared(
    value: ir.Value | None, operator: str, number: float
) -> ir.Value | None:
    """Return what a boolean compares with this number."""
    node = producer(value, operator)
    if node is None or scalar(operand(node, 1)) != number:
        return None
    return first(node)


def _negated(value: ir.Value | None) -> ir.Value | None:
    node = producer(value, "Not")
    return None if node is None else first(node)
