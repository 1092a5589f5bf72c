"""Replace an If by the branch it takes, if its condition is known once shapes are.

Exporters write such an If for a squeeze.
"""

from __future__ import annotations

import onnx_ir as ir

from mrt.frontend.onnx.resolve.bodies import (
    body_named,
    inline_body,
    replace_outputs,
)
from mrt.frontend.onnx.resolve.inputs import Shapes
from mrt.frontend.onnx.resolve.known_values import KnownValues
from mrt.graph.values import nodes, operand

# The most nodes whose shapes are inferred, all inferences together: an ordinary model
# has a few constructs, each of which costs one.
MOST_INFERRED_NODES = 1 << 19


class InferenceBudget:
    """Counts the nodes whose shapes are inferred while constructs are resolved."""

    def __init__(self) -> None:
        self._done = 0

    def allows(self, model: ir.Model) -> bool:
        """Return whether one more inference is allowed, and count it."""
        self._done += sum(1 for _ in model.graph.all_nodes())
        return self._done <= MOST_INFERRED_NODES


def inline_if_branches(
    model: ir.Model, shapes: Shapes, budget: InferenceBudget
) -> None:
    """Replace each If of a known condition by the nodes of its branch.

    The first ones are replaced first, because conditions of later ones may follow from
    them. Those that stay are refused with the unsupported operators.
    """
    while nodes(model, "If") and budget.allows(model):
        if not _inline_one(model, shapes):
            return


def _inline_one(model: ir.Model, shapes: Shapes) -> bool:
    """Inline the first If whose condition is known; return whether there was one."""
    known_values = KnownValues(model, shapes)
    for node in nodes(model, "If"):
        branch = _branch_taken(node, known_values)
        if branch is None:
            continue
        prefix = f"{node.outputs[0].name}."
        results = inline_body(node, branch, [], prefix)
        replace_outputs(node, results)
        return True
    return False


def _branch_taken(node: ir.Node, known_values: KnownValues) -> ir.Graph | None:
    """Return the branch that the condition chooses; None where it is not known."""
    condition = known_values.single(operand(node, 0))
    if condition is None or not node.outputs:
        return None
    name = "then_branch" if condition else "else_branch"
    branch = body_named(node, name)
    if branch is None or branch.inputs:
        return None
    if len(branch.outputs) != len(node.outputs):
        return None
    return branch
