"""Keeps zeros from dividing where a constant Where does not choose the quotient."""

from __future__ import annotations

import math

import numpy as np
import onnx_ir as ir

from mrt.graph.patch import add_constant
from mrt.graph.values import (
    Array,
    constant,
    first,
    nodes,
    operand,
    producer,
    shape_of,
    sole_user,
)
from mrt.rewrite.constants.fold_constants import LARGEST_RESULT


def divide_where_chosen(model: ir.Model) -> int:
    """Where(c, x / d, z) -> Where(c, x / d', z), where d' is 1 in the place of zeros that c does not choose.

    Tables of sin(x) / x are computed this way. Applies to constants c and d and one
    reader of the quotient. Equal, since these quotients are dropped.
    """
    count = 0
    for node in nodes(model, "Where"):
        chosen = constant(first(node))
        if chosen is not None:
            count += _divide(node, 1, chosen) + _divide(node, 2, ~chosen)
    return count


def _divide(node: ir.Node, index: int, chosen: Array) -> bool:
    """Write ones for the zeros that divide in operand `index` where `chosen` is false."""
    quotient = operand(node, index)
    shape = shape_of(node.outputs[0])
    division = None if quotient is None else producer(quotient, "Div")
    if quotient is None or division is None or division.graph is None:
        return False
    divisor = constant(operand(division, 1))
    if divisor is None or shape is None or shape_of(quotient) != shape:
        return False
    if sole_user(quotient) is not node or math.prod(shape) > LARGEST_RESULT:
        return False
    everywhere = np.broadcast_to(divisor, shape)
    dropped = (everywhere == 0) & ~np.broadcast_to(chosen, shape)
    if not dropped.any():
        return False
    ones = np.where(dropped, np.ones_like(everywhere), everywhere)
    graph = division.graph
    name = f"{quotient.name}.divisor"
    division.replace_input_with(1, add_constant(graph, ones, name))
    return True
