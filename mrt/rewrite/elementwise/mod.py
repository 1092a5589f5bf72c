"""Lowers the remainder of a float division to x - floor(x / y) * y.

With fmod, the quotient is truncated instead.
"""

from __future__ import annotations

import onnx_ir as ir

from mrt.graph.patch import Patch
from mrt.graph.values import (
    constant,
    first,
    int_attribute,
    nodes,
    operand,
    scalar,
)


def lower_mod(model: ir.Model) -> int:
    """Mod(x, y) of floats -> x - Floor(x / y) * y.

    With fmod: x - Sign(q) * Floor(Abs(q)) * y for q = x / y. Applies except where fmod
    is set and the divisor is a scalar: that node becomes a lookup table. Equal up to
    rounding, except where x / y is so close to an integer that rounding decides its
    floor.
    """
    count = 0
    for node in nodes(model, "Mod"):
        x = first(node)
        y = operand(node, 1)
        truncated = int_attribute(node, "fmod", 0)
        if node.outputs[0].dtype != ir.DataType.FLOAT or (
            truncated and scalar(y) not in (None, 0.0)
        ):
            continue
        if constant(x) is not None and constant(y) is not None:
            continue
        patch = Patch(node)
        quotient = patch.add("Div", x, y)
        if truncated:
            rounded = patch.add(
                "Mul",
                patch.add("Floor", patch.add("Abs", quotient)),
                patch.add("Sign", quotient),
            )
        else:
            rounded = patch.add("Floor", quotient)
        patch.finish(patch.add("Sub", x, patch.add("Mul", rounded, y)))
        count += 1
    return count
