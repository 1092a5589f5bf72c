"""Canonicalizes products with a reciprocal to quotients, and some powers.

A Pow becomes the operators that equal it.
"""

from __future__ import annotations

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
    sole_user,
)

Pair = tuple[ir.Value, ir.Value]


def canonicalize_reciprocal(model: ir.Model) -> int:
    """x * Reciprocal(y) -> x / y; x * (Reciprocal(y) * k) -> (x / y) * k, k constant.

    Pow(x, k) -> x * x, Sqrt, Reciprocal, 1 / Sqrt for k of 2, 0.5, -1, -0.5; x itself
    for 1. Applies to computed x and y. Equal up to rounding.
    """
    products, powers = (
        [node for node in nodes(model, name) if _is_float(node)]
        for name in ("Mul", "Pow")
    )
    return sum(map(_write_product, products)) + sum(map(_write_power, powers))


def _is_float(node: ir.Node) -> bool:
    return node.outputs[0].dtype in (None, ir.DataType.FLOAT)


def _write_product(node: ir.Node) -> bool:
    for x, factor in _both_ways(node):
        if constant(x) is not None:
            continue
        patch = Patch(node)
        if inverse := producer(factor, "Reciprocal"):
            patch.finish(patch.add("Div", x, first(inverse)))
            return True
        if scaled_inverse := _scaled_inverse(factor, node):
            inverse, scale = scaled_inverse
            patch.finish(
                patch.add("Mul", patch.add("Div", x, first(inverse)), scale)
            )
            return True
    return False


def _both_ways(node: ir.Node) -> list[Pair]:
    left, right = first(node), operand(node, 1)
    assert right is not None
    return [(left, right), (right, left)]


def _scaled_inverse(
    value: ir.Value, reader: ir.Node
) -> tuple[ir.Node, ir.Value] | None:
    product = producer(value, "Mul")
    if product is None or sole_user(value) is not reader:
        return None
    pairs = (
        (producer(x, "Reciprocal"), scale)
        for x, scale in _both_ways(product)
        if constant(scale) is not None
    )
    return next(
        ((inverse, scale) for inverse, scale in pairs if inverse is not None),
        None,
    )


def _write_power(node: ir.Node) -> bool:
    x, exponent = first(node), scalar(operand(node, 1))
    if (
        constant(x) is not None
        or exponent not in (2.0, 1.0, 0.5, -0.5, -1.0)
        or _broadcasts(node)
    ):
        return False
    patch = Patch(node)
    if exponent == 2.0:
        value = patch.add("Mul", x, x)
    elif exponent == 1.0:
        value = patch.add(
            "Mul", x, patch.constant(np.array(1.0, np.float32), "one")
        )
    else:
        value = x if exponent == -1.0 else patch.add("Sqrt", x)
        value = value if exponent == 0.5 else patch.add("Reciprocal", value)
    patch.finish(value)
    return True


def _broadcasts(node: ir.Node) -> bool:
    """Whether a constant exponent has more dimensions than the base.

    The result then has more dimensions than the base too.
    """
    array, shape = constant(operand(node, 1)), first(node).shape
    return array is None or shape is None or array.ndim > len(shape)
