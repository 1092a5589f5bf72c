"""Changes of scale and dtype."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
from jax import Array

from cvm.program import DTYPES, IntArray
from cvm.xla.arrays import Operand, centred, floor_shift, saturated, wide


def rescale(
    x: Operand,
    multiplier: Operand,
    shift: Operand,
    *,
    input_zp: int,
    output_zp: int,
    dtype: str,
) -> Array:
    """The integers that `unsaturated` gives, stopped at the ends of the dtype."""
    moved = unsaturated(
        x, multiplier, shift, input_zp=input_zp, output_zp=output_zp
    )
    return saturated(moved, dtype)


def rescale_in_32_bits(
    x: Operand,
    multiplier: IntArray,
    shift: IntArray,
    *,
    input_zp: int,
    output_zp: int,
    dtype: str,
) -> Array:
    """The same to i8 by short factors, where the product and the half fit 32 bits."""
    half = np.left_shift(1, shift - 1).astype(np.int32)
    product = centred(x, input_zp) * _along(x, multiplier.astype(np.int32))
    rounded = product + _along(x, half)
    moved = jnp.right_shift(rounded, _along(x, shift.astype(np.int32)))
    return saturated(moved + np.int32(output_zp), dtype)


def unsaturated(
    x: Operand,
    multiplier: Operand,
    shift: Operand,
    *,
    input_zp: int,
    output_zp: int,
) -> Array:
    """The product is below 2^62 in size and half of 2^shift at most 2^61: both fit 64 bits."""
    product = times(x, multiplier, input_zp)
    return floor_shift(product, _along(x, wide(shift))) + output_zp


def times(x: Operand, factor: Operand, zero_point: int) -> Operand:
    """The product of what x is above its zero point and a factor, or one for each channel."""
    return (wide(x) - zero_point) * _along(x, wide(factor))


def _along(x: Operand, factor: Operand) -> Operand:
    """One number for each place of the last axis, or one for all: x may have rank 0."""
    return factor if x.ndim else factor[0]


def clamp(x: Operand, *, min: int, max: int) -> Array:
    """`min(max(x, min), max)`; both lie in x's dtype."""
    low, high = (jnp.asarray(end, x.dtype) for end in (min, max))
    return jnp.minimum(jnp.maximum(x, low), high)


def cast(x: Operand, *, dtype: str) -> Array:
    """The same integer; to bool, whether it is not 0."""
    return jnp.asarray(x).astype(DTYPES[dtype])
