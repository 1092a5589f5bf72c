"""Replace an If whose condition is computed by both of its branches and a choice.

A program of integers has no branches: it computes both results and keeps one, which is
the same number. Both must be tensors of the same known shape, since a choice would
otherwise broadcast them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from mrt.frontend.onnx.resolve.bodies import (
    ResolvePatch,
    body_named,
    inline_body,
    replace_outputs,
)
from mrt.frontend.onnx.resolve.if_branch import InferenceBudget
from mrt.frontend.onnx.resolve.inputs import Shapes
from mrt.frontend.onnx.resolve.known_values import KnownValues
from mrt.graph.values import nodes, operand, producer

FIRST_WHERE = 9  # the opset from which on there is a Where


def take_both_branches(
    model: ir.Model, shapes: Shapes, budget: InferenceBudget
) -> bool:
    """Replace the first If whose results have known shapes; return whether there was one."""
    waiting = nodes(model, "If")
    has_where = model.graph.opset_imports.get("", 0) >= FIRST_WHERE
    if not (waiting and has_where and budget.allows(model)):
        return False
    known_values = KnownValues(model, shapes)
    for node in waiting:
        branches = _branches(node)
        # Inference finds the shape of an If only where both branches have it.
        shapes_of = [known_values.shape(output) for output in node.outputs]
        if branches and None not in shapes_of:
            _compute_both(node, *branches)
            return True
    return False


def _branches(node: ir.Node) -> tuple[ir.Graph, ir.Graph] | None:
    """Return the graphs for true and for false; None where they do not fit the node."""
    chosen, other = (
        body_named(node, f"{name}_branch") for name in ("then", "else")
    )
    if chosen is None or other is None or operand(node, 0) is None:
        return None
    count = len(node.outputs)
    fits = not (chosen.inputs or other.inputs) and count == len(
        chosen.outputs
    ) == len(other.outputs)
    return (chosen, other) if count and fits else None


@dataclass(frozen=True)
class Append:
    """An If that joins a piece to a list `when` its condition is so, and else returns the list as it was before."""

    node: ir.Node
    before: ir.Value
    piece: ir.Value
    when: bool


def append_of(node: ir.Node) -> Append | None:
    """Return what an If appends; None if it does anything else."""
    branches = _branches(node)
    if branches is None or len(node.outputs) != 1:
        return None
    chosen, other = (branch.outputs[0] for branch in branches)
    for when, joins, keeps in ((True, chosen, other), (False, other, chosen)):
        join, before = producer(joins, "Concat"), _kept(keeps)
        operands = [] if join is None else list(join.inputs)
        if before is None or len(operands) != 2 or operands[0] is not before:
            continue
        if operands[1] is not None:
            return Append(node, before, operands[1], when)
    return None


def _kept(value: ir.Value) -> ir.Value | None:
    """Return the operand of an Identity, or the value itself."""
    node = producer(value, "Identity")
    return value if node is None else operand(node, 0)


def _compute_both(node: ir.Node, chosen: ir.Graph, other: ir.Graph) -> None:
    prefix = f"{node.outputs[0].name}."
    results = (
        inline_body(node, branch, [], f"{prefix}{name}.")
        for name, branch in (("then", chosen), ("else", other))
    )
    patch = ResolvePatch(node)
    # One element may have axes, which a choice would add to its results.
    scalar = patch.constant(np.zeros(0, np.int64), "scalar")
    condition = patch.add("Reshape", operand(node, 0), scalar)
    replace_outputs(
        node,
        [
            patch.add("Where", condition, *pair)
            for pair in zip(*results, strict=True)
        ],
    )
