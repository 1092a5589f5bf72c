"""The rule of FakeQuantize of the domain "mrt": the value in the format that the file gives.

A rescale rounds ties up, QuantizeLinear to even. Ties are common only where the ratio of the
scales is a power of two, such as behind an average of 16 elements. There, q steps and x:

    odd = q - 2 * floor(q / 2), where q = floor(x / 2^k)
    y   = floor((x + 2^(k-1) - 1 + odd) / 2^k)      x / 2^k to the nearest, ties to even
"""

from __future__ import annotations

import math

import numpy as np
import onnx_ir as ir

from mrt.quantize.builder import Handle
from mrt.quantize.context import LoweringContext
from mrt.quantize.file_formats import format_of_node
from mrt.quantize.roots import Arithmetic
from mrt.quantize.rules.registry import own_rule
from mrt.quantize.tensor import Format, Tensor

MOST_SHIFT = 24
"""Beyond it, a tie is as rare as with any other ratio."""


@own_rule("FakeQuantize")
def fake_quantize(net: LoweringContext, node: ir.Node) -> None:
    """Requantize to the file's format; a tensor that has it already stays as it is."""
    tensor = net.as_computed(node.inputs[0])
    target, result = format_of_node(node), node.outputs[0]
    shift = common_ties(tensor, target)
    if shift and not tensor.centred:
        tensor = _with_ties_to_even(net, tensor, target.scale, shift)
    net.define(result, net.requantize_to(tensor, target, str(result.name)))


def common_ties(tensor: Tensor, target: Format) -> int:
    """Return k if every ratio of the scales is 2^-k, up to MOST_SHIFT; else 0."""
    ratios = np.unique(tensor.scale / target.scale)
    fraction, exponent = math.frexp(float(ratios[0]))
    shift = 1 - exponent
    is_common = ratios.size == 1 and fraction == 0.5
    return shift if is_common and 0 < shift <= MOST_SHIFT else 0


def _with_ties_to_even(
    net: LoweringContext, tensor: Tensor, scale: float, shift: int
) -> Tensor:
    """Return the tensor in i32 at a scale that is 2^shift times its own."""
    x = net.widen(tensor)
    a = Arithmetic(net.builder, len(x.layout))
    value = a.add_number(x.value, 2 ** (shift - 1) - 1)
    value = a.add(value, _odd(a, a.floor_right(x.value, shift)))
    value = a.floor_right(value, shift)
    return Tensor(value, np.array([scale]), 0, x.layout, low=x.low, high=x.high)


def _odd(a: Arithmetic, x: Handle) -> Handle:
    """1 for odd integers, 0 for even ones."""
    even = a.left(a.floor_right(x, 1), 1)
    return a.clamp(a.sub(x, even), 0, 1)
