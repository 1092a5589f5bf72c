"""Element by element. Every result fits its dtype by proof, so 32 bits are enough but for products."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from cvm.xla.arrays import Operand, saturated, wide


def add(x: Operand, y: Operand) -> Array:
    """x + y."""
    return jnp.add(x, y)


def sub(x: Operand, y: Operand) -> Array:
    """x - y."""
    return jnp.subtract(x, y)


def mul(x: Operand, y: Operand, *, shift: int) -> Operand:
    """`floor(x y / 2^shift + 1/2)`: shifted twice, since half of 2^63 would not fit."""
    exact = wide(x) * wide(y)
    if shift:
        exact = ((exact >> (shift - 1)) + 1) >> 1
    return exact.astype(np.int32)


def intdiv(x: Operand, y: Operand) -> Array:
    """XLA's quotient is truncated toward zero, too."""
    return lax.div(*jnp.broadcast_arrays(x, y))


def maximum(x: Operand, y: Operand) -> Array:
    """The greater."""
    return jnp.maximum(x, y)


def minimum(x: Operand, y: Operand) -> Array:
    """The lesser."""
    return jnp.minimum(x, y)


def abs_(x: Operand) -> Array:
    """The absolute value."""
    return jnp.abs(x)


def negate(x: Operand, *, input_zp: int, output_zp: int) -> Operand:
    """`input_zp - x + output_zp`; i8 saturates, the others fit."""
    exact = input_zp - wide(x) + output_zp
    if x.dtype == np.int8:
        return saturated(exact, "i8")
    return exact.astype(x.dtype)


def shift_left(x: Operand, s: Operand) -> Array:
    """In 32 bits, since some machines take the amount modulo the bits of the dtype."""
    moved = jnp.left_shift(_word(x), _word(s))
    return moved.astype(x.dtype)


def shift_right(x: Operand, s: Operand, *, round: bool) -> Array:
    """`floor(x / 2^s)`; with `round`, bit s-1 is added."""
    value, amount = _word(x), _word(s)
    moved = jnp.right_shift(value, amount)
    if round:
        last = jnp.right_shift(value, jnp.maximum(amount - 1, 0)) & 1
        moved = moved + jnp.where(amount > 0, last, 0)
    return moved.astype(x.dtype)


def _word(x: Operand) -> Array:
    return jnp.asarray(x).astype(np.int32)


def clz(x: Operand) -> Array:
    """Leading zeros of 32 bits; of constants below 0, XLA's folding (jax 0.10) gives -32."""
    zeros = lax.clz(jnp.maximum(x, 0))
    return jnp.where(jnp.less(x, 0), 0, zeros)


def isqrt(x: Operand) -> Operand:
    """The root's 16 bits, the highest first: each stays if the square does not exceed x."""
    value = wide(x)
    root: Operand = jnp.zeros_like(value)
    for bit in reversed(range(16)):
        tried = root + (1 << bit)
        root = jnp.where(tried * tried <= value, tried, root)
    return root.astype(np.int32)
