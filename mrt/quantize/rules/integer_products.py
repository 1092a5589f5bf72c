"""Products of whole numbers by whole weights, exactly: what a tree's leaves say, counts of truths, numbers of places.

Weights beyond i8 are written in digits to the base 128, each of which is a product of its own.
"""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from cvm.errors import Unproven
from cvm.program import IntArray
from mrt.graph.canonical_values import require_constant
from mrt.quantize.builder import Handle
from mrt.quantize.context import LoweringContext, identity
from mrt.quantize.decompose import PartialSum, add_parts, provable_parts
from mrt.quantize.rules.integers import INTEGER_RULES
from mrt.quantize.tensor import Tensor

DIGIT_BITS = 7
MOST = 127  # of i8, in which digits are stored


def digits(weights: IntArray) -> list[IntArray]:
    """Whole numbers as i8, the first counting 1, each further one 128 times the one before."""
    rest, found = weights.astype(np.int64), []
    while np.abs(rest).max(initial=0) > MOST:
        low = ((rest + 2 ** (DIGIT_BITS - 1)) & (2**DIGIT_BITS - 1)) - 2 ** (
            DIGIT_BITS - 1
        )
        found.append(low.astype(np.int8))
        rest = (rest - low) >> DIGIT_BITS
    return [*found, rest.astype(np.int8)]


def _gemm(net: LoweringContext, node: ir.Node) -> None:
    """dense for each digit of the weights, w[N,K]; the bias goes with the first. Unproven where i32 may not hold a sum."""
    x = net.to_float_layout(net.as_computed(node.inputs[0]))
    if (dtype := net.narrowest_dtype(x)) == "i32":
        raise Unproven("dense.C1", "whole numbers beyond 16 bits")
    value = net.cast_to(x, dtype).value
    weights, bias = (require_constant(node, index).astype(np.int64) for index in (1, 2))
    parts = [
        PartialSum(piece, place * DIGIT_BITS)
        for place, digit in enumerate(digits(weights))
        for piece in _products(
            net, value, digit, bias if place == 0 else np.zeros_like(bias)
        )
    ]
    total, shift = add_parts(net.builder, parts)
    if shift:
        raise Unproven("add.fits", "a sum of whole numbers beyond i32")
    net.define(node.outputs[0], Tensor(total, np.ones(1), 0, identity(2)))


def _products(
    net: LoweringContext, x: Handle, weights: IntArray, bias: IntArray
) -> list[Handle]:
    rows = net.builder.types[x].shape[0]

    def part(start: int, stop: int) -> Handle:
        whole = stop - start == weights.shape[1]
        piece = (
            x
            if whole
            else net.builder.emit(
                "slice", x, start=(0, start), size=(rows, stop - start)
            )
        )
        addend = (bias if start == 0 else np.zeros_like(bias)).astype(np.int32)
        return net.builder.emit(
            "dense",
            piece,
            net.constant(weights[:, start:stop]),
            net.constant(addend),
            input_zp=0,
        )

    return provable_parts(weights.shape[1], part)


INTEGER_RULES["Gemm"] = _gemm
