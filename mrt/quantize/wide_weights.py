"""Weights finer than 8 bits: a product with a weight of 9..15 bits is two products with i8 weights, the first shifted.

w = 2^low_bits * high + low, both i8, so x * w = (x * high << low_bits) + x * low: the same integer, at twice the
multiply-accumulates. The bias goes with the low products.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from cvm.program import IntArray
from mrt.quantize.builder import Handle, ProgramBuilder
from mrt.quantize.decompose import PartialSum, add_parts

MOST = 127  # of i8; -128 is not used, as it is not in weights of 8 bits
MOST_BITS = 7  # in which MOST and all below it can be written

Products = Callable[[IntArray, IntArray], Sequence[Handle]]
"""Emits the products with i8 weights and an i32 bias, in as many parts as the proof asks for."""


def low_bits_of(weights: IntArray) -> int:
    """How many bits of the greatest weight i8 has no room for."""
    greatest = max(int(weights.max(initial=0)), -int(weights.min(initial=0)))
    return max(greatest.bit_length() - MOST_BITS, 0)


def halves(weights: IntArray, low_bits: int) -> tuple[IntArray, IntArray]:
    """High and low half as i8, of weights up to 2^(7 + low_bits) - 1; the low one as near to 0 as the high one allows."""
    assert 0 < low_bits <= MOST_BITS, "the low half of a wider weight is beyond i8"
    wide = weights.astype(np.int64)
    high = np.clip((wide + 2 ** (low_bits - 1)) >> low_bits, -MOST, MOST)
    low = wide - (high << low_bits)
    return high.astype(np.int8), low.astype(np.int8)


def sum_of_products(
    builder: ProgramBuilder, weights: IntArray, bias: IntArray, products: Products
) -> tuple[Handle, int]:
    """The sum and its shift (see `add_parts`): of one kind of products where i8 holds the weights, else of two."""
    low_bits = low_bits_of(weights)
    if low_bits == 0:
        return add_parts(
            builder,
            [PartialSum(value) for value in products(weights.astype(np.int8), bias)],
        )
    high, low = halves(weights, low_bits)
    upper = [
        PartialSum(value, low_bits) for value in products(high, np.zeros_like(bias))
    ]
    return add_parts(
        builder, [*upper, *(PartialSum(value) for value in products(low, bias))]
    )
