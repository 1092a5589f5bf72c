"""Along one axis."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from cvm.xla.arrays import Operand


def reduce_sum(x: Operand, *, axis: int) -> Array:
    """In 32 bits: every part of the sum fits, by proof."""
    return jnp.sum(x, axis=axis, keepdims=True, dtype=np.int32)


def reduce_max(x: Operand, *, axis: int) -> Array:
    """The greatest."""
    return jnp.max(x, axis=axis, keepdims=True)


def reduce_min(x: Operand, *, axis: int) -> Array:
    """The least."""
    return jnp.min(x, axis=axis, keepdims=True)


def argmax(x: Operand, *, axis: int) -> Array:
    """The lowest index among equals, as XLA has it, too."""
    return lax.argmax(jnp.asarray(x), axis, np.int32)


def argsort(x: Operand, *, descending: bool) -> Array:
    """A stable sort; the bits of x turned sort the other way and keep the order of equals."""
    key = jnp.invert(x) if descending else jnp.asarray(x)
    index = lax.broadcasted_iota(np.int32, key.shape, key.ndim - 1)
    _, order = lax.sort((key, index), is_stable=True, num_keys=1)
    return order
