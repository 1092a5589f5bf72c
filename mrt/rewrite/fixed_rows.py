"""Makes a float model give as many rows as its program, where it chooses among boxes.

Apart from its NonMaxSuppression and what looks up by it, the model stays as it is.
"""

from __future__ import annotations

import onnx_ir as ir

from mrt.graph.infer_shapes import infer_shapes
from mrt.graph.values import nodes
from mrt.rewrite.constants.fold_constants import fold_constants
from mrt.rewrite.constants.lift_constants import lift_constants
from mrt.rewrite.lookup.non_max_suppression import (
    NAME,
    lower_non_max_suppression,
)


def with_fixed_rows(model: ir.Model) -> ir.Model | None:
    """Return a copy that always gives the most rows; None for a model without a NonMaxSuppression of ONNX."""
    if not nodes(model, NAME):
        return None
    copy = model.clone()
    infer_shapes(copy)
    # The limits of a NonMaxSuppression may be computed from constants.
    while lift_constants(copy) + fold_constants(copy):
        infer_shapes(copy)
    lower_non_max_suppression(copy)
    return copy
