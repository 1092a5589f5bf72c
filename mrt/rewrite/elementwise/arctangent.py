"""Lowers the arctangent of a quotient, as exporters write atan2, to one of a quotient from 0 to 1."""

from __future__ import annotations

import onnx_ir as ir

from mrt.graph.patch import Patch
from mrt.graph.values import constant, first, nodes, producer

QUARTER_TURN = 1.5707963267948966  # pi / 2


def lower_arctangent(model: ir.Model) -> int:
    """Atan(a / b) -> t = Atan(least / greatest of |a|, |b|); pi/2 - t where |a| > |b|; the sign of a / b.

    A quotient has no greatest number, so that few bits hold it badly, and x / 0 is
    infinite; least / greatest is neither. Applies to computed a and b. Equal up to
    rounding, NaN for 0 / 0 included; a divisor of -0 counts as 0.
    """
    count = 0
    for node in nodes(model, "Atan"):
        quotient = producer(first(node), "Div")
        if quotient is None or quotient.outputs[0].dtype not in (
            None,
            ir.DataType.FLOAT,
        ):
            continue
        a, b = quotient.inputs
        if a is None or b is None or a is b:
            continue
        if producer(a, "Min") is not None and producer(b, "Max") is not None:
            continue  # it is the least / greatest already
        if constant(a) is None and constant(b) is None:
            _write(Patch(node), a, b)
            count += 1
    return count


def _write(patch: Patch, a: ir.Value, b: ir.Value) -> None:
    above, below = patch.add("Abs", a), patch.add("Abs", b)
    ratio = patch.add(
        "Div", patch.add("Min", above, below), patch.add("Max", above, below)
    )
    flat = patch.add("Atan", ratio)
    quarter_turn = patch.number(QUARTER_TURN, "quarter_turn")
    steep = patch.add("Add", patch.add("Neg", flat), quarter_turn)
    is_steep = patch.add("Greater", above, below)
    angle = patch.add("Where", is_steep, steep, flat)
    angle = _negated_below_zero(patch, b, angle)
    patch.finish(_negated_below_zero(patch, a, angle))


def _negated_below_zero(
    patch: Patch, value: ir.Value, angle: ir.Value
) -> ir.Value:
    is_below = patch.add("Less", value, patch.number(0.0, "zero"))
    return patch.add("Where", is_below, patch.add("Neg", angle), angle)
