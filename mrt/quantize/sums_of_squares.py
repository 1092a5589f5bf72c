"""Finds sums of squares that functions of one number read: the power of a spectrum.

    |z|^2 = re * re + im * im,    then Sqrt, Log, Pow, a division, ..

Such a sum ranges over twice as many octaves as its terms. It becomes an octave code
(`octaves.py`), from the accumulators of the numbers that are squared, and the functions become
tables on the code. Other readers read the numbers of the codes.
"""

from __future__ import annotations

import math
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass

import onnx_ir as ir

from mrt.graph.canonical_values import (
    integers_of,
    name_of,
    shape_of,
)
from mrt.graph.values import moved_to
from mrt.quantize.curves.curve import Curve

MOST_TERMS = 16
"""The most squares of one sum: each doubling leaves half a bit less for each. Other sums are long."""

MOST_IN_A_SUM = 16384
"""The most squares or codes of a sum along axes that a quotient reads."""


@dataclass(frozen=True)
class SumOfSquares:
    """The sum of squares of some values, and of the elements of each along some axes."""

    terms: tuple[ir.Value, ...]
    axes: tuple[int, ...] = ()
    is_long: bool = False

    @property
    def is_single(self) -> bool:
        """Whether this is a square, of which functions are functions of the number itself."""
        return len(self.terms) == 1 and not self.axes


Sums = Mapping[str, SumOfSquares]
"""Sums of squares by the name of the value."""


def find_sums(nodes: Sequence[ir.Node]) -> Sums:
    """Return every sum of squares, of one too; `nodes` are in topological order."""
    sums: dict[str, SumOfSquares] = {}
    for node in nodes:
        total = _sum_of(node, sums)
        if total is not None:
            sums[name_of(node.outputs[0])] = total
    return sums


def _sum_of(
    node: ir.Node, sums: Mapping[str, SumOfSquares]
) -> SumOfSquares | None:
    if node.outputs[0].dtype not in (None, ir.DataType.FLOAT):
        return None
    if node.op_type == "Mul" and node.inputs[0] is node.inputs[1]:
        squared = node.inputs[0]
        assert squared is not None
        return SumOfSquares((squared,))
    if node.op_type == "Add":
        return _joined(node, sums)
    if node.op_type == "ReduceSum":
        return _reduced(node, sums)
    return None


def _only_read_here(
    value: ir.Value | None, sums: Mapping[str, SumOfSquares]
) -> SumOfSquares | None:
    """Return the sum that a value is, if it has one reader and is summed along no axis yet."""
    if value is None or len(value.uses()) != 1 or value.is_graph_output():
        return None
    total = sums.get(name_of(value))
    return None if total is None or total.axes else total


def _joined(
    node: ir.Node, sums: Mapping[str, SumOfSquares]
) -> SumOfSquares | None:
    left, right = (_only_read_here(value, sums) for value in node.inputs)
    if left is None or right is None:
        return None
    terms = left.terms + right.terms
    shape = shape_of(node.outputs[0])
    if len(terms) > MOST_TERMS or any(shape_of(x) != shape for x in terms):
        return None
    return SumOfSquares(terms)


def _reduced(
    node: ir.Node, sums: Mapping[str, SumOfSquares]
) -> SumOfSquares | None:
    value = node.inputs[0]
    total = _only_read_here(value, sums)
    if total is None:
        return None
    shape = shape_of(value)
    axes = tuple(axis % len(shape) for axis in integers_of(node, 1))
    count = math.prod(shape[axis] for axis in axes) * len(total.terms)
    if count > MOST_IN_A_SUM:
        return None
    return SumOfSquares(total.terms, axes, count > MOST_TERMS)


def read_by_curves(
    nodes: Sequence[ir.Node],
    sums: Sums,
    curves: Mapping[str, Curve],
    others: Iterable[str] = (),
) -> Sums:
    """Return the sums that a curve reads, directly or behind movements, or that are among others there.

    A single square is a function itself, and remains for the others alone, as a long sum does.
    """
    values = {name_of(value): value for node in nodes for value in node.outputs}
    roots = {
        name_of(curve.root)
        for name, curve in curves.items()
        if name in values and _is_read(values[name], curve.root, curves)
    }
    products = frozenset(others)
    return {
        name: total
        for name, total in sums.items()
        if _reaches(
            values[name],
            products if total.is_single or total.is_long else roots | products,
        )
    }


def _is_read(
    value: ir.Value, root: ir.Value, curves: Mapping[str, Curve]
) -> bool:
    """Whether a curve's value is read outside longer curves, other than as a divisor.

    The small numbers of a divisor need more than the 16 linear bits of a table.
    """
    for use in value.uses():
        longer = curves.get(name_of(use.node.outputs[0]))
        is_inside = longer is not None and longer.root is root
        is_divisor = use.node.op_type == "Div" and use.idx == 1
        if not is_inside and not is_divisor:
            return True
    return value.is_graph_output()


def _reaches(value: ir.Value, roots: Container[str]) -> bool:
    """Whether a value is among these, or is moved to one."""
    return any(name_of(moved) in roots for moved in moved_to(value))
