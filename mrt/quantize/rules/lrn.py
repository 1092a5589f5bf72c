"""The rule of LRN, by neighbouring channels: x * (bias + alpha / size * sum of squares)^-beta.

Squares are summed in i32. The root of the sum, in 15 bits, is the index of a table of
the factors (..)^-beta, and x is multiplied by the factor. The index is the root and not
the sum because it has finer steps for small sums, where the factor changes most.
"""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import onnx_ir as ir

from cvm.program import IntArray
from mrt.exact.fixed_point import FloatArray, quantize_array, usable_scale
from mrt.exact.functions import power
from mrt.quantize.builder import Handle
from mrt.quantize.context import LoweringContext
from mrt.quantize.roots import Arithmetic
from mrt.quantize.rules.registry import rule
from mrt.quantize.tensor import Tensor

INDEX_BITS = 15
SQUARE_BITS = 30


@rule("LRN")
def local_response(net: LoweringContext, node: ir.Node) -> None:
    """Write squares, their sums over `size` channels, the factor of each sum, and the product."""
    x = net.widen(net.in_16_bits(node.inputs[0]))
    a = Arithmetic(net.builder, len(x.layout))
    size = node.attributes["size"].as_int()
    shift = (size - 1).bit_length()  # `size` squares fit 30 bits
    squares = a.mul(x.value, x.value, shift)
    squares = a.clamp(squares, 0, 2 ** (SQUARE_BITS - shift))
    total = _window_sums(a, squares, x.layout.index(1), size)
    length = net.builder.bounds[total].max.bit_length()
    spare = max(SQUARE_BITS - length, 0)
    root = net.builder.emit("isqrt", a.left(total, spare))
    root = a.clamp(root, 0, 2**INDEX_BITS - 1)
    index = net.builder.emit("cast", root, dtype="i16")
    square_scale = np.ldexp(x.scale * x.scale, shift - spare)
    values, scale = _table(net, node, square_scale)
    factor = net.builder.emit("table", index, net.constant(values))
    factor = net.builder.emit("cast", factor, dtype="i32")
    product = a.mul(x.value, factor)
    net.define(node.outputs[0], Tensor(product, x.scale * scale, 0, x.layout))


def _table(
    net: LoweringContext, node: ir.Node, square_scale: FloatArray
) -> tuple[IntArray, float]:
    """Return the factor for each root r in i16, and its scale.

    r is the root of all sums from r^2 to (r + 1)^2 - 1; the entry is computed for r (r
    + 1). The index is never negative, so the entries for negative ones do not matter.
    """
    roots = np.arange(2**INDEX_BITS, dtype=np.float64)
    factors = _factors(node, square_scale * (roots * (roots + 1)))
    scale = usable_scale(float(factors[0]) / 32767, net.options.scales)
    values = np.full(65536, 32767, np.int16)
    values[32768:] = quantize_array(factors, scale, 0, 32767)
    return values, scale


def _window_sums(a: Arithmetic, value: Handle, axis: int, size: int) -> Handle:
    """Return sums of `size` neighbours along an axis, padded with zeros.

    Sums of 1, 2, 4, ... neighbours are computed for every position, and those that make
    up the binary digits of the size are added.
    """
    shape = a.builder.types[value].shape
    pads = [0] * (2 * len(shape))
    pads[2 * axis], pads[2 * axis + 1] = (size - 1) // 2, size // 2
    sums = a.builder.emit("pad", value, pads=tuple(pads), value=0)
    total: Handle | None = None
    summed = 0
    for bit in range(size.bit_length()):
        width = 2**bit  # of the windows in `sums`
        if size & width:
            addend = _slice(a, sums, axis, summed, shape[axis])
            total = addend if total is None else a.add(total, addend)
            summed += width
        if 2 * width <= size:
            length = a.builder.types[sums].shape[axis] - width
            first = _slice(a, sums, axis, 0, length)
            second = _slice(a, sums, axis, width, length)
            sums = a.add(first, second)
    assert total is not None
    return total


def _slice(
    a: Arithmetic, value: Handle, axis: int, start: int, length: int
) -> Handle:
    """Return the entries [start, start + length) of an axis."""
    size = list(a.builder.types[value].shape)
    begin = [0] * len(size)
    begin[axis], size[axis] = start, length
    return a.builder.emit("slice", value, start=tuple(begin), size=tuple(size))


def _factors(node: ir.Node, sums: FloatArray) -> FloatArray:
    """Compute (bias + alpha / size * sum)^-beta.

    It takes square roots where beta is a multiple of 1/4, at most 4; else decimal
    numbers.
    """
    alpha = node.attributes["alpha"].as_float()
    beta = node.attributes["beta"].as_float()
    bias = node.attributes["bias"].as_float()
    base = bias + alpha / node.attributes["size"].as_int() * sums
    if beta * 4 != int(beta * 4) or not 0 <= beta <= 4:
        exponent = Decimal(-beta)
        powers = [power(Decimal(float(real)), exponent) for real in base]
        return np.array([float(number) for number in powers])
    fourth_root = np.sqrt(np.sqrt(base))
    result = np.ones_like(base)
    for _ in range(int(beta * 4)):
        result = result / fourth_root
    return result
