"""Lowers division by a constant to multiplication."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from mrt.graph.operators import ROUNDINGS
from mrt.graph.patch import Patch
from mrt.graph.values import constant, nodes


def lower_div(model: ir.Model) -> int:
    """Div(x, k) -> Mul(x, 1/k).

    1/k is computed in float64 and rounded once. Applies when every 1/k is a finite
    float32; not where k is one number and the quotient is rounded to an integer, which
    the rounding of 1/k could change. Equal to one rounding of float32.
    """
    count = 0
    for node in nodes(model, "Div"):
        x, y = node.inputs
        if node.outputs[0].dtype not in (None, ir.DataType.FLOAT):
            continue
        divisor = constant(y)
        if (
            divisor is None
            or divisor.dtype.kind != "f"
            or (divisor.size == 1 and _is_cut(node))
        ):
            continue
        with np.errstate(all="ignore"):
            inverse = (1.0 / divisor.astype(np.float64)).astype(np.float32)
        if not np.isfinite(inverse).all():
            continue
        patch = Patch(node)
        patch.finish(patch.add("Mul", x, patch.constant(inverse, "inverse")))
        count += 1
    return count


def _is_cut(node: ir.Node) -> bool:
    """Whether a reader of the result rounds it to an integer or casts it."""
    return any(
        use.node.op_type in ROUNDINGS or use.node.op_type == "Cast"
        for use in node.outputs[0].uses()
    )
