"""Normalisation by neighbouring channels: x / (bias + alpha / size * sum of squares)^beta, the power by table."""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import onnx_ir as ir

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
    """Squares in i32, summed along the channels; the root of the sum in 15 bits picks one of 65536 factors; x times that.

    The root, not the sum: it tells small sums apart, where the factor changes most, however great others may be.
    """
    x = net.widen(net.in_16_bits(node.inputs[0]))
    a, size = Arithmetic(net.builder, len(x.layout)), node.attributes["size"].as_int()
    shift = (size - 1).bit_length()
    squares = a.mul(x.value, x.value, shift)
    total = _windowed(
        net, a, a.clamp(squares, 0, 2 ** (SQUARE_BITS - shift)), x.layout.index(1), size
    )
    greatest = net.builder.bounds[total].max
    spare = max(SQUARE_BITS - greatest.bit_length(), 0)
    root = a.clamp(
        net.builder.emit("isqrt", a.left(total, spare)), 0, 2**INDEX_BITS - 1
    )
    index = net.builder.emit("cast", root, dtype="i16")
    roots = np.arange(
        2**INDEX_BITS, dtype=np.float64
    )  # of all sums from r^2 to (r + 1)^2: r (r + 1) stands for them
    factors = _factors(
        node, np.ldexp(x.scale * x.scale, shift - spare) * (roots * (roots + 1))
    )
    scale = usable_scale(float(factors[0]) / 32767, net.options.scales)
    values = np.full(65536, 32767, np.int16)  # the index is never below 0
    values[32768:] = quantize_array(factors, scale, 0, 32767)
    factor = net.builder.emit(
        "cast", net.builder.emit("table", index, net.constant(values)), dtype="i32"
    )
    net.define(
        node.outputs[0], Tensor(a.mul(x.value, factor), x.scale * scale, 0, x.layout)
    )


def _windowed(
    net: LoweringContext, a: Arithmetic, value: Handle, axis: int, size: int
) -> Handle:
    """Sums of `size` neighbours along an axis: sums of 1, 2, 4, ... at every place, those that make up the size added."""
    shape = net.builder.types[value].shape
    pads = [0] * (2 * len(shape))
    pads[2 * axis : 2 * axis + 2] = (size - 1) // 2, size // 2
    whole = net.builder.emit("pad", value, pads=tuple(pads), value=0)
    total, done = None, 0
    for bit in range(size.bit_length()):
        if size >> bit & 1:
            part = _from(net, whole, axis, done, shape[axis])
            total, done = part if total is None else a.add(total, part), done + 2**bit
        longer = net.builder.types[whole].shape[axis] - 2**bit
        if 2 ** (bit + 1) <= size:
            whole = a.add(
                _from(net, whole, axis, 0, longer),
                _from(net, whole, axis, 2**bit, longer),
            )
    assert total is not None
    return total


def _from(
    net: LoweringContext, value: Handle, axis: int, start: int, size: int
) -> Handle:
    shape = net.builder.types[value].shape
    begin = tuple(start if index == axis else 0 for index in range(len(shape)))
    return net.builder.emit(
        "slice", value, start=begin, size=(*shape[:axis], size, *shape[axis + 1 :])
    )


def _factors(node: ir.Node, sums: FloatArray) -> FloatArray:
    """(bias + alpha / size * sum)^-beta: by square roots where beta is a number of quarters, else in decimal."""
    alpha, beta, bias = (
        node.attributes[name].as_float() for name in ("alpha", "beta", "bias")
    )
    base = bias + alpha / node.attributes["size"].as_int() * sums
    if beta * 4 != int(beta * 4) or not 0 <= beta <= 4:
        exponent = Decimal(-beta)
        return np.array([float(power(Decimal(float(item)), exponent)) for item in base])
    fourth, result = np.sqrt(np.sqrt(base)), np.ones_like(base)
    for _ in range(int(beta * 4)):
        result = result / fourth
    return result
