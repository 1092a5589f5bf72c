"""Division by a constant becomes multiplication; division by a computed value multiplication by its reciprocal."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from mrt.rewrite.edit import Patch, constant, nodes, operand, scalar


def lower_division(model: ir.Model) -> int:
    """Div(x, k) -> Mul(x, 1/k); Div(x, y) -> Mul(x, Reciprocal(y)).

    1/k is taken in float64 and rounded once. Applies when every 1/k is a finite float32. A scalar divided by a computed
    value stays, being a function of one element. Equal to one rounding of float32.
    """
    count = 0
    for node in nodes(model, "Div"):
        x, y = node.inputs
        divisor = constant(y)
        patch = Patch(node)
        if divisor is not None:
            with np.errstate(all="ignore"):
                inverse = (1.0 / divisor.astype(np.float64)).astype(np.float32)
            if not np.isfinite(inverse).all():
                continue
            patch.finish(patch.add("Mul", x, patch.constant(inverse, "inverse")))
        elif scalar(operand(node, 0)) is None:
            patch.finish(patch.add("Mul", x, patch.add("Reciprocal", y)))
        else:
            continue
        count += 1
    return count
