"""Octave codes as roots of curves that are steep near 0, such as the logarithm of a band's energy.

A curve is steep if the first curved operator on its root is a logarithm, a root, a power below 1
or a reciprocal. If the root was never negative, only its accumulator has its small numbers: 16
linear bits hold 15 octaves of it, and 8 bits 8.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import onnx_ir as ir

from mrt.graph.canonical_values import constant_of, name_of
from mrt.quantize.context import LoweringContext
from mrt.quantize.curves.curve import Curve
from mrt.quantize.octaves import OctaveCode
from mrt.quantize.roots import Arithmetic
from mrt.quantize.tensor import Tensor
from mrt.quantize.wide_values import as_wide

_STRAIGHT = ("Add", "Mul", "Max", "Clip", "Relu")
_STEEP = ("Log", "Sqrt", "Reciprocal")


def steep_roots(curves: Mapping[str, Curve]) -> list[ir.Value]:
    """Return the roots of the curves that are steep near 0."""
    return [curve.root for curve in curves.values() if is_steep(curve)]


def is_steep(curve: Curve) -> bool:
    """Whether a curve begins with a function that is steep near 0, of k * root + c, k > 0 and c >= 0."""
    value = curve.root
    for node in curve.nodes:
        if not any(operand is value for operand in node.inputs):
            return False
        if node.op_type in _STEEP:
            return True
        constants = [constant_of(operand) for operand in node.inputs]
        numbers = [
            float(array.ravel()[0]) for array in constants if array is not None
        ]
        if node.op_type == "Pow":
            return constants[0] is None and numbers[0] < 1
        if node.op_type == "Div":
            return constants[1] is None and len(numbers) == 1
        computed = len(constants) - len(numbers)
        if (
            node.op_type not in _STRAIGHT
            or computed > 1
            or min(numbers, default=0) < 0
        ):
            return False
        value = node.outputs[0]
    return False


def octave_form(net: LoweringContext, curve: Curve) -> Tensor | None:
    """Return the root of a steep curve as an octave code, if it has an accumulator and was never negative."""
    name = name_of(curve.root)
    if name not in net.plan.wide or not is_steep(curve):
        return None
    if net.is_requantized(net.as_computed(curve.root)):
        return None
    measured = net.ranges.get(name)
    if measured is None or measured.min < 0:
        return None
    x = as_wide(net, curve.root)
    if x.integral or net.dtype(x) != "i32":
        return None
    a = Arithmetic(net.builder, len(x.layout))
    most = max(net.builder.bounds[x.value].max, 1)
    number = a.clamp(x.value, 0, most)
    octaves = OctaveCode.finest(most.bit_length())
    code = octaves.encode(a, number)
    return replace(x, value=code, octaves=octaves)
