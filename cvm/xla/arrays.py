"""What the functions of instructions share: dtypes by our names, and products of bytes that fit."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from cvm.program import DTYPES, IntArray

Operand = Array | IntArray  # traced, or a constant of the program
RAW_TERMS = (
    2**17 - 1
)  # products of two i8 whose sum fits i32, whatever they are


def wide(x: Operand) -> Operand:
    """The same integers in 64 bits; a constant remains one."""
    return x.astype(np.int64)


def centred(x: Operand, zero_point: int) -> Operand:
    """`x - zero_point` in 32 bits."""
    return x.astype(np.int32) - np.int32(zero_point)


def saturated(x: Operand, dtype: str) -> Array:
    """Stop at the ends of a dtype."""
    limits = np.iinfo(DTYPES[dtype])
    return jnp.clip(x, limits.min, limits.max).astype(DTYPES[dtype])


def floor_shift(x: Operand, shift: Operand) -> Array:
    """`floor(x / 2^shift + 1/2)` for x at most 2^62 in size and shift in 1..62."""
    half = jnp.left_shift(np.int64(1), wide(shift) - 1)
    return jnp.right_shift(x + half, wide(shift))


def is_bytes(*operands: Any) -> bool:
    """Whether all are i8: XLA multiplies bytes to sums of 32 bits."""
    return all(operand.dtype == np.int8 for operand in operands)


def product(
    x: Operand, y: Operand, contracted: tuple[int, int], batch: bool
) -> Array:
    """Sums of 32 bits over one axis of each; with `batch`, for each index of both first axes by itself."""
    first = ((0,), (0,)) if batch else ((), ())
    axes = ((contracted[0],), (contracted[1],))
    return lax.dot_general(
        jnp.asarray(x),
        jnp.asarray(y),
        (axes, first),
        preferred_element_type=np.int32,
    )
