"""Computes a product with a weight of 9 to 15 bits as two products with i8 weights.

With w = 2^low_bits * high + low, where high and low are i8,

    x * w = (x * high << low_bits) + x * low

exactly, at twice the multiply-accumulates. The bias is added to the low products.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from cvm.program import IntArray
from mrt.quantize.builder import Handle, ProgramBuilder
from mrt.quantize.decompose import PartialSum, add_parts

MOST = 127
"""The greatest i8. -128 is not used, as in weights of 8 bits."""

MOST_BITS = 7
"""Bits of MOST."""

Products = Callable[[IntArray, IntArray], Sequence[Handle]]
"""Emits the products with i8 weights and an i32 bias, in as many parts as the proof needs."""


def low_bits_of(weights: IntArray) -> int:
    """Return the number of bits that the greatest weight has more than i8.

    Weights that are i8 already, of a file that uses -128, need no second product.
    """
    if weights.dtype == np.int8:
        return 0
    greatest = max(int(weights.max(initial=0)), -int(weights.min(initial=0)))
    return max(greatest.bit_length() - MOST_BITS, 0)


def halves(weights: IntArray, low_bits: int) -> tuple[IntArray, IntArray]:
    """Return the high and the low half of weights up to 2^(7 + low_bits) - 1, both i8.

    The low half is as near to 0 as the high one allows.
    """
    assert 0 < low_bits <= MOST_BITS, (
        "the low half of a wider weight is beyond i8"
    )
    integers = weights.astype(np.int64)
    nearest = (integers + 2 ** (low_bits - 1)) >> low_bits
    high = np.clip(nearest, -MOST, MOST)
    low = integers - (high << low_bits)
    return high.astype(np.int8), low.astype(np.int8)


def sum_of_products(
    builder: ProgramBuilder,
    weights: IntArray,
    bias: IntArray,
    products: Products,
) -> tuple[Handle, int]:
    """Emit the sum of products, with two products for each weight beyond i8.

    Return the sum and its shift (see `add_parts`).
    """
    return add_parts(builder, partial_sums(weights, bias, products))


def partial_sums(
    weights: IntArray, bias: IntArray, products: Products, exponent: int = 0
) -> list[PartialSum]:
    """Emit the products of `sum_of_products` without adding them, in steps of 2^exponent and more."""
    low_bits = low_bits_of(weights)
    if low_bits == 0:
        sums = products(weights.astype(np.int8), bias)
        return [PartialSum(value, exponent) for value in sums]
    high, low = halves(weights, low_bits)
    upper = products(high, np.zeros_like(bias))
    lower = products(low, bias)
    return [
        *(PartialSum(value, exponent + low_bits) for value in upper),
        *(PartialSum(value, exponent) for value in lower),
    ]
