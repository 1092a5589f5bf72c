"""Images sampled at rational places."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
from jax import Array

from cvm.xla.arrays import Operand


def resize(
    x: Operand,
    *,
    scale: tuple[int, ...],
    offset: tuple[int, ...],
    border: tuple[int, ...],
    mode: str,
) -> Array:
    """One axis after the other; bilinear sums fit 32 bits, since part of the weights gives no more than all."""
    image = jnp.asarray(x)
    if mode == "bilinear":
        image = image.astype(np.int32)
    for axis in (0, 1):
        n, d = scale[2 * axis : 2 * axis + 2]
        size = x.shape[1 + axis]
        last = (size - 1) * n - offset[axis] + border[axis]
        positions = np.arange(last // d + 1) * d + offset[axis]
        image = _sampled(image, positions, n, 1 + axis, mode)
    return image


def _sampled(
    x: Array,
    positions: np.ndarray[tuple[int], np.dtype[np.int64]],
    n: int,
    axis: int,
    mode: str,
) -> Array:
    """Along one axis: each position, in units of 1/n, stands between two neighbours."""
    place, remainder = np.divmod(positions, n)
    before = np.maximum(place, 0)
    after = np.minimum(place + 1, x.shape[axis] - 1)
    if mode == "nearest":
        nearer = np.where(2 * remainder >= n, after, before)
        return jnp.take(x, nearer, axis=axis, mode="clip")
    weight = remainder.astype(np.int32).reshape(-1, *[1] * (3 - axis))
    lower = jnp.take(x, before, axis=axis, mode="clip") * (n - weight)
    return lower + jnp.take(x, after, axis=axis, mode="clip") * weight
