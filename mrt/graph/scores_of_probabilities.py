"""Finds the scores (logits) that an output of probabilities is made of: what its last Softmax or Sigmoid reads."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass

import onnx_ir as ir

from mrt.graph.operators import MOVEMENT
from mrt.graph.values import constant

SQUASHING = ("Softmax", "LogSoftmax", "Sigmoid")
_PASSED = MOVEMENT | {
    "Abs",
    "Add",
    "Cast",
    "Clip",
    "Div",
    "Exp",
    "Gather",
    "Mul",
    "Neg",
    "ReduceMax",
    "ReduceSum",
    "Sub",
}
"""What brings probabilities into another form: 1 less one beside it, or several divided by their sum."""


@dataclass(frozen=True)
class Scores:
    """A value, and the axis along which a number that is added to all does not count; None where it does."""

    value: ir.Value
    free_axis: int | None


def scores_of_probabilities(output: ir.Value) -> Scores | None:
    """Return the scores that an output is made of; None without a Softmax or Sigmoid, or where there are several values behind."""
    _, squashing = _behind(output, set())
    # A logarithm of a sum of exponentials is taken from the scores that it is read beside.
    ends, squashing = _behind(output, {_read_by(node) for node in squashing})
    if not squashing or len(ends) != 1:
        return None
    return Scores(ends.pop(), _free_axis(squashing))


def _behind(
    output: ir.Value, stops: Set[ir.Value]
) -> tuple[set[ir.Value], list[ir.Node]]:
    """Return what an output is computed from, and the nodes that squash it.

    The way back ends at the stops, at what is squashed, and at operators that keep no probabilities.
    """
    ends: set[ir.Value] = set()
    squashing: list[ir.Node] = []
    seen, waiting = {output}, [output]
    while waiting:
        value = waiting.pop()
        node = None if value in stops else value.producer()
        if node is not None and node.op_type in _PASSED:
            operands = {it for it in node.inputs if it is not None} - seen
            waiting += [it for it in operands if constant(it) is None]
            seen |= operands
        elif node is not None and node.op_type in SQUASHING:
            squashing.append(node)
            ends.add(_read_by(node))
        else:
            ends.add(value)
    return ends, squashing


def _read_by(node: ir.Node) -> ir.Value:
    value = node.inputs[0]
    assert value is not None, "a Softmax reads something"
    return value


def _free_axis(nodes: list[ir.Node]) -> int | None:
    """Return the axis of a Softmax, which makes the same of numbers that are all greater by one; a Sigmoid has none."""
    axes = {
        None
        if node.op_type == "Sigmoid"
        else node.attributes.get_int("axis", -1)
        for node in nodes
    }
    return axes.pop() if len(axes) == 1 else None
