"""Branches, loops and sequences, where what they hang on is known at conversion, become plain nodes."""

from __future__ import annotations

import onnx

from mrt.frontend.onnx.resolve.if_branch import inline_if_branches
from mrt.frontend.onnx.resolve.known_values import Shapes
from mrt.frontend.onnx.resolve.loop_scan import unroll_loops
from mrt.frontend.onnx.resolve.sequence import SEQUENCES, resolve_sequences

MOST_LOOPS = 100  # each costs an inference of all shapes
_CONTROL = {"If", "Loop", "Scan", *SEQUENCES}


def resolve_control_flow(proto: onnx.ModelProto, shapes: Shapes) -> None:
    """One after the other, since each may decide the next; what stays is refused with the other operators."""
    for _ in range(MOST_LOOPS):
        if not any(node.op_type in _CONTROL for node in proto.graph.node):
            return
        inline_if_branches(proto, shapes)
        if not unroll_loops(proto, shapes) and not resolve_sequences(proto, shapes):
            return
