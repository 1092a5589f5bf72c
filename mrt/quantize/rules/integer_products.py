"""The exact rules of Gemm and Conv for integral values and weights: tree leaves, counts, binary networks.

Weights beyond i8 are written in digits to the base 128: w = d0 + 128 d1 + 128^2 d2 +
... Each digit is a dense instruction of its own, and the results are added in steps of
128^i. So it is with a convolution.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import onnx_ir as ir

from cvm.errors import Unproven
from cvm.program import IntArray
from mrt.exact.fixed_point import FloatArray
from mrt.graph.canonical_values import require_constant
from mrt.quantize.builder import Handle
from mrt.quantize.context import LoweringContext
from mrt.quantize.decompose import (
    PartialSum,
    add_parts,
    provable_parts,
    slice_last_axis,
)
from mrt.quantize.layer_weights import LayerWeights
from mrt.quantize.product_operand import OperandPart
from mrt.quantize.rules.integers import define_integral
from mrt.quantize.rules.linear import convolve
from mrt.quantize.rules.registry import integer_rule
from mrt.quantize.tensor import (
    NHWC,
    Tensor,
    identity,
)

DIGIT_BITS = 7
MOST = 127  # of i8, the dtype of digits


def digits(weights: IntArray) -> list[IntArray]:
    """Return integers as digits in i8, the lowest first; digit i counts 128^i.

    All but the last lie in -64 .. 63.
    """
    remaining, lower_digits = weights.astype(np.int64), list[IntArray]()
    half, mask = 2 ** (DIGIT_BITS - 1), 2**DIGIT_BITS - 1
    while np.abs(remaining).max(initial=0) > MOST:
        lowest = ((remaining + half) & mask) - half
        lower_digits.append(lowest.astype(np.int8))
        remaining = (remaining - lowest) >> DIGIT_BITS
    return [*lower_digits, remaining.astype(np.int8)]


@integer_rule("Gemm")
def _gemm(net: LoweringContext, node: ir.Node) -> None:
    """Write a dense for each digit of the weights, w[N,K]; the bias is added to the lowest.

    Raise Unproven where x has more than 16 bits or i32 may not hold the sum.
    """
    x = _in_16_bits(net, net.to_float_layout(net.as_computed(node.inputs[0])))

    def products(weights: IntArray, bias: IntArray) -> list[Handle]:
        return _products(net, x.value, weights, bias)

    total = _sum_of_digits(net, node, require_constant(node, 1), products)
    define_integral(net, node.outputs[0], total, identity(2))


@integer_rule("Conv")
def _conv(net: LoweringContext, node: ir.Node) -> None:
    """Write a convolution for each digit of the weights; the bias is added to the lowest.

    Raise Unproven where x has more than 16 bits or i32 may not hold the sum.
    """
    x = _in_16_bits(net, net.to_nhwc(net.as_computed(node.inputs[0])))
    weights = require_constant(node, 1).transpose(0, 2, 3, 1)

    def products(weights: IntArray, bias: IntArray) -> list[Handle]:
        layer = LayerWeights(weights, bias.astype(np.int32), np.ones(1))
        total, shift = convolve(net, node, [OperandPart(x)], layer)
        _require_steps_of_one(shift)
        return [total]

    total = _sum_of_digits(net, node, weights, products)
    define_integral(net, node.outputs[0], total, NHWC)


def _in_16_bits(net: LoweringContext, x: Tensor) -> Tensor:
    dtype = net.narrowest_dtype(x)
    if dtype == "i32":
        raise Unproven("dense.C1", "integers beyond 16 bits")
    return net.cast_to(x, dtype)


def _sum_of_digits(
    net: LoweringContext,
    node: ir.Node,
    weights: FloatArray,
    products: Callable[[IntArray, IntArray], list[Handle]],
) -> Handle:
    """Emit the products with each digit of the weights, and their sum."""
    bias = require_constant(node, 2).astype(np.int64)
    parts: list[PartialSum] = []
    for place, digit in enumerate(digits(weights.astype(np.int64))):
        bias_of_digit = bias if place == 0 else np.zeros_like(bias)
        exponent = place * DIGIT_BITS
        handles = products(digit, bias_of_digit)
        parts += [PartialSum(handle, exponent) for handle in handles]
    total, shift = add_parts(net.builder, parts)
    _require_steps_of_one(shift)
    return total


def _require_steps_of_one(shift: int) -> None:
    if shift:
        raise Unproven("add.fits", "a sum of integers beyond i32")


def _products(
    net: LoweringContext, x: Handle, weights: IntArray, bias: IntArray
) -> list[Handle]:
    """Emit x times i8 weights plus the bias, in as few parts as can be proven."""

    def emit(start: int, stop: int) -> Handle:
        piece = slice_last_axis(net.builder, x, start, stop)
        addend = bias if start == 0 else np.zeros_like(bias)
        return net.builder.emit(
            "dense",
            piece,
            net.constant(weights[:, start:stop]),
            net.constant(addend.astype(np.int32)),
            input_zp=0,
        )

    return provable_parts(weights.shape[1], emit)
