"""Tables whose entries are octave codes: functions of one number that quotients by powers read."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import onnx_ir as ir

from mrt.graph.canonical_values import constant_of, name_of
from mrt.quantize.context import LoweringContext
from mrt.quantize.curves.curve import Curve
from mrt.quantize.curves.table_fusion import CurveTable, curve_root
from mrt.quantize.octaves import EXTRA_BITS, OctaveCode
from mrt.quantize.tensor import WIDE_BITS, Tensor, wide_format


def lower_to_code(
    net: LoweringContext, value: ir.Value, curve: Curve, *, of_code: bool
) -> bool:
    """Write a curve as a code; False where it is negative somewhere, or its root is no code and has to be one."""
    x = net.code_of(curve.root) if of_code else curve_root(net, curve)
    if x is None:
        return False
    table = CurveTable.of(net, curve, x)
    if table.results.interval()[0] < 0:
        return False
    gain = _gain(curve) if net.options.scales == "real" else None
    if x.octaves is not None and gain:
        net.define(value, replace(x, scale=x.scale * gain))
    else:
        net.define(value, _coded(net, value, table))
    return True


def _gain(curve: Curve) -> float | None:
    """Return the number by which a curve multiplies, if that is all that it does."""
    gain, value = 1.0, curve.root
    for node in curve.nodes:
        factor = constant_of(node.inputs[-1])
        if node.op_type != "Mul" or node.inputs[0] is not value:
            return None
        if factor is None:
            return None
        gain, value = gain * float(factor.item()), node.outputs[0]
    return gain


def _coded(net: LoweringContext, value: ir.Value, table: CurveTable) -> Tensor:
    """Write a table to codes of 60 bits: of 30, and of steps that are 2^15 and 2^30 times finer."""
    curve, range_ = table.results, net.ranges.of(name_of(value))
    coarse = wide_format(range_, curve.interval(), net.options.scales)
    scale = coarse.scale
    numbers = curve.entries(coarse).astype(np.int64)
    for _ in range(2):
        scale = math.ldexp(scale, -EXTRA_BITS)
        finer = curve.entries(replace(coarse, scale=scale))
        is_great = numbers >= 2**EXTRA_BITS
        numbers = np.where(is_great, numbers << EXTRA_BITS, finer)
    octaves = OctaveCode.finest(WIDE_BITS + 1 + 2 * EXTRA_BITS)
    handle = table.emit(net, octaves.integers(numbers).astype(np.int16))
    return Tensor(handle, np.array([scale]), 0, table.x.layout, octaves=octaves)
