"""Outputs that are cosines: the dot product of two vectors, each divided by its own length."""

from __future__ import annotations

from dataclasses import dataclass

import onnx_ir as ir

from mrt.graph.values import (
    constant,
    constant_integers,
    ints_attribute,
    moved_from,
    operand,
    producer,
    rank_of,
    scalar,
)

_OF_LENGTHS = ("Clip", "Max", "Add", "Reshape", "Sqrt")
"""What stands between a sum of squares and the division by a length, in which Max and Add keep it from being 0."""

UNBOUNDED = 1e30  # of a Clip that has no bound above


@dataclass(frozen=True)
class Cosine:
    """The values from an output back to the dot product, and the product of each two numbers, if it is a value."""

    values: tuple[ir.Value, ...]
    factors: tuple[ir.Value, ir.Value]
    product: ir.Value | None = None


def cosine(output: ir.Value) -> Cosine | None:
    """Return how an output is computed as a cosine, and at most moved; None if it is none, or that is not plain."""
    values = moved_from(output)
    if (node := producer(values[-1], "MatMul")) is not None:
        left, right = node.inputs
        if left is None or right is None:
            return None
        is_cosine = _is_unit(left, -1) and _is_unit(right, -2)
        return Cosine(tuple(values), (left, right)) if is_cosine else None
    node = producer(values[-1], "ReduceSum")
    product = node.inputs[0] if node is not None else None
    factors = producer(product, "Mul")
    axes = constant_integers(node.inputs[1]) if node is not None else None
    if factors is None or product is None or axes is None or len(axes) != 1:
        return None
    left, right = factors.inputs
    if left is None or right is None:
        return None
    is_cosine = _is_unit(left, axes[0]) and _is_unit(right, axes[0])
    return Cosine(tuple(values), (left, right), product) if is_cosine else None


def _is_unit(vectors: ir.Value, axis: int) -> bool:
    """Whether vectors along an axis are divided by their lengths, and perhaps transposed since."""
    rank = rank_of(vectors)
    if rank is None:
        return False
    axis %= rank
    transposed = producer(vectors, "Transpose")
    if transposed is not None:
        moved, axes = transposed.inputs[0], ints_attribute(transposed, "perm")
        return (
            moved is not None
            and axes is not None
            and _is_unit(moved, axes[axis])
        )
    quotient = producer(vectors, "Div")
    if quotient is None:
        return False
    numbers, length = quotient.inputs
    return numbers is not None and _is_length(length, numbers, axis, rank)


def _is_length(
    value: ir.Value | None, numbers: ir.Value, axis: int, rank: int
) -> bool:
    """Whether a value is the Euclidean length of numbers along an axis, at least, with that axis kept."""
    if rank_of(value) != rank:
        return False
    roots = 0
    while (node := producer(value, *_OF_LENGTHS)) is not None:
        roots += node.op_type == "Sqrt"
        if not _keeps_lengths(node):
            return False
        value = node.inputs[0]
    summed = producer(value, "ReduceSum")
    square = producer(summed.inputs[0], "Mul") if summed is not None else None
    if summed is None or square is None or roots != 1:
        return False
    axes = constant_integers(summed.inputs[1])
    is_along = axes is not None and [it % rank for it in axes] == [axis]
    return is_along and square.inputs[0] is square.inputs[1] is numbers


def _keeps_lengths(node: ir.Node) -> bool:
    """Whether a node makes no length shorter."""
    if node.op_type in ("Add", "Max"):
        array = constant(operand(node, 1))
        return array is not None and bool((array >= 0).all())
    most = scalar(operand(node, 2)) if node.op_type == "Clip" else None
    return most is None or most >= UNBOUNDED
