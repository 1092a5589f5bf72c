"""Values found by index. A proof keeps indices inside; beside them, `clip` takes the nearest."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
from jax import Array

from cvm.xla.arrays import Operand


def table(x: Operand, values: Operand) -> Array:
    """`values[x - least value of x's dtype]`."""
    least = np.iinfo(x.dtype).min
    index = jnp.asarray(x).astype(np.int32) - np.int32(least)
    return jnp.take(values, index, mode="clip")


def gather(values: Operand, indices: Operand) -> Array:
    """`y[n,w,c] = values[n, indices[n,w], c]`."""
    index = jnp.asarray(indices)[:, :, None]
    return jnp.take_along_axis(values, index, axis=1, mode="clip")


def interpolate(x: Operand, values: Operand) -> Array:
    """`128 * values[i] + f * (values[i+1] - values[i])` with i and f the high and the low bits of `x + 32768`."""
    place = jnp.asarray(x).astype(np.int32) + np.int32(32768)
    index, rest = place >> 7, place & 127
    wide = jnp.asarray(values).astype(np.int32)
    start = jnp.take(wide, index, mode="clip")
    end = jnp.take(wide, index + 1, mode="clip")
    return start * 128 + rest * (end - start)
