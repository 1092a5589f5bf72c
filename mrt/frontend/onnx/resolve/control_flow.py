"""Resolve branches, loops and sequences to plain nodes, where conversion can decide them."""

from __future__ import annotations

import onnx_ir as ir

from mrt.frontend.onnx.resolve.if_both import take_both_branches
from mrt.frontend.onnx.resolve.if_branch import (
    InferenceBudget,
    inline_if_branches,
)
from mrt.frontend.onnx.resolve.inputs import Shapes
from mrt.frontend.onnx.resolve.kept_rows import resolve_kept_rows
from mrt.frontend.onnx.resolve.loop_scan import unroll_one_loop
from mrt.frontend.onnx.resolve.sequence import SEQUENCES, resolve_sequences
from mrt.graph.values import nodes

MOST_LOOPS = 100  # each costs an inference of all shapes
_CONTROL = ("If", "Loop", "Scan", *SEQUENCES)


def resolve_control_flow(model: ir.Model, shapes: Shapes) -> None:
    """Resolve one construct after another, since each may decide the next.

    Those that stay are refused with the unsupported operators.
    """
    budget = InferenceBudget()
    for _ in range(MOST_LOOPS):
        if not nodes(model, *_CONTROL) or not budget.allows(model):
            return
        inline_if_branches(model, shapes, budget)
        resolved = (
            unroll_one_loop(model, shapes)
            or resolve_sequences(model, shapes)
            or resolve_kept_rows(model, shapes, budget)
            or take_both_branches(model, shapes, budget)
            or unroll_one_loop(model, shapes, may_choose=True)
        )
        if not resolved:
            return
