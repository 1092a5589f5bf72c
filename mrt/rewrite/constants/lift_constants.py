"""Turns Constant nodes into initializers."""

from __future__ import annotations

import onnx_ir as ir
from onnx_ir.passes.common import LiftConstantsToInitializersPass


def lift_constants(model: ir.Model) -> int:
    """Constant -> initializer of the same name.

    Always applies, except where the constant is an output of the graph.
    """
    before = len(model.graph)
    LiftConstantsToInitializersPass(lift_all_constants=True, size_limit=0)(
        model
    )
    return before - len(model.graph)
