"""Sign of a sum, from the accumulator itself: a table would read 8 bits, in which small sums are 0."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from mrt.quantize.context import LoweringContext
from mrt.quantize.curves.curve import Curve
from mrt.quantize.tensor import Tensor


def lower_sign(net: LoweringContext, value: ir.Value, curve: Curve) -> bool:
    """Write Sign of an accumulator as a clamp to -1 .. 1, exactly; return False for any other curve.

    Scales are above 0, so that the integers have the signs of the reals.
    """
    (*before, node) = curve.nodes
    if before or node.op_type != "Sign":
        return False
    x = net.as_computed(curve.root)
    if net.dtype(x) != "i32" or x.clipped or x.centred or x.zero_point:
        return False
    signs = net.builder.emit("clamp", x.value, min=-1, max=1)
    handle = net.builder.emit("cast", signs, dtype="i8")
    net.define(value, Tensor(handle, np.ones(1), 0, x.layout))
    return True
